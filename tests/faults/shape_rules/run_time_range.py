"""A range over an argument: its bounds must be constants."""

import torch
import triton
import triton.language as tl

FINDS = {"compile-error": ["cuda:90", "hip:gfx942", "interpreter"]}


@triton.jit
def fill(out_ptr, n):
    offsets = tl.arange(0, n)  # here: compile-error
    tl.store(out_ptr + offsets, offsets)


def run(dev):
    out = torch.empty(64, dtype=torch.int32, device=dev)
    fill[(1,)](out, 64)
    return out


def ref():
    return torch.arange(64, dtype=torch.int32)
