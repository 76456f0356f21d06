"""Counts are stored where there is room for true and false alone."""

import torch
import triton
import triton.language as tl

FINDS = {"wrong-value": ["*"]}


@triton.jit
def count(x_ptr, out_ptr, N: tl.constexpr):
    row = tl.program_id(0)
    tl.store(out_ptr + row, tl.sum((tl.load(x_ptr + row * N + tl.arange(0, N)) > 0).to(tl.int32)))


def data():
    return torch.linspace(-1, 2, 64).reshape(4, 16)


def run(dev):
    out = torch.empty(4, dtype=torch.bool, device=dev)
    count[(4,)](data().to(dev), out, N=16)
    return out


def ref():
    return (data() > 0).sum(1)
