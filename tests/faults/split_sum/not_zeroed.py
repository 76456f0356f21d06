"""Atomic sums into an output that nobody has set to zero."""

import torch
import triton
import triton.language as tl

FINDS = {"undefined-value": ["*"]}


@triton.jit
def total(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    columns = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + columns, mask=columns < N, other=0.0)
    tl.atomic_add(out_ptr, tl.sum(x, 0))


def data():
    return torch.arange(300, dtype=torch.float32)


def run(dev):
    out = torch.empty(1, device=dev)
    total[(3,)](data().to(dev), out, 300, BLOCK=128)
    return out


def ref():
    return data().sum().reshape(1)
