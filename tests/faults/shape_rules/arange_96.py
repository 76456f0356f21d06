"""A range over a count that is no power of two: GPUs and the interpreter refuse it."""

import torch
import triton
import triton.language as tl

FINDS = {"not-a-power-of-two": ["cuda:90", "hip:gfx942", "interpreter"]}


@triton.jit
def increment(x_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)  # here: not-a-power-of-two
    tl.store(x_ptr + offsets, tl.load(x_ptr + offsets) + 1)


def run(dev):
    x = torch.zeros(96, dtype=torch.int32, device=dev)
    increment[(1,)](x, BLOCK=96)
    return x


def ref():
    return torch.ones(96, dtype=torch.int32)
