"""Tiles that overlap by one column, of which each writes its own sum."""

import torch
import triton
import triton.language as tl

FINDS = {"race": ["*"]}


@triton.jit
def smooth(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * (BLOCK - 1) + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0)
    tl.store(out_ptr + offsets, x + tl.sum(x, 0), mask=mask)  # here: race


def data():
    torch.manual_seed(17)
    return torch.rand(63)


def run(dev):
    x = data().to(dev)
    out = torch.empty_like(x)
    smooth[(2,)](x, out, 63, BLOCK=32)
    return out
