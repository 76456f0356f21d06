"""Rows are called multiples of 16 elements apart, and are 100 apart."""

import torch
import triton
import triton.language as tl

FINDS = {"false-multiple-of": ["*"]}


@triton.jit
def rows(x_ptr, out_ptr, stride, BLOCK: tl.constexpr):
    columns = tl.arange(0, BLOCK)
    start = tl.multiple_of(tl.program_id(0) * stride, 16)  # here: false-multiple-of
    x = tl.load(x_ptr + start + columns, mask=columns < stride, other=0.0)
    tl.store(out_ptr + tl.program_id(0), tl.sum(x, 0))


def data():
    torch.manual_seed(7)
    return torch.rand(3, 100)


def run(dev):
    out = torch.empty(3, device=dev)
    rows[(3,)](data().to(dev), out, 100, BLOCK=128)
    return out


def ref():
    return data().sum(1)
