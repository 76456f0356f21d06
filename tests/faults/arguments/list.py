"""Sizes are given as a list, which is no argument of a kernel; a tuple is one."""

import torch
import triton
import triton.language as tl

FINDS = {"launch-error": ["cuda:90", "hip:gfx942", "interpreter"]}


@triton.jit
def fill(out_ptr, sizes, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, 1.0, mask=offsets < sizes[0] * sizes[1])


def run(dev):
    out = torch.zeros(3, 5, device=dev)
    fill[(1,)](out, [3, 5], BLOCK=16)  # here: launch-error
    return out


def ref():
    return torch.ones(3, 5)
