"""Scores are rounded to int8, and one of them is NaN."""

import torch
import triton
import triton.language as tl

FINDS = {"float-to-int": ["*"]}


@triton.jit
def quantise(x_ptr, out_ptr, scale, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets) * scale
    tl.store(out_ptr + offsets, x.to(tl.int8))  # here: float-to-int


def data():
    return torch.tensor([0.5, -1.0, 3.0, 0.25])


def run(dev):
    x = data().to(dev)
    out = torch.empty(4, dtype=torch.int8, device=dev)
    quantise[(1,)](x, out, 100.0, BLOCK=4)
    return out
