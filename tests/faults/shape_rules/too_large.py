"""A block of more elements than the language takes."""

import torch
import triton
import triton.language as tl

FINDS = {"compile-error": ["cuda:90", "hip:gfx942", "interpreter"]}


@triton.jit
def fill(out_ptr, BLOCK: tl.constexpr):
    tl.store(out_ptr + tl.arange(0, BLOCK), 1.0)


def run(dev):
    out = torch.empty(2**21, device=dev)
    fill[(1,)](out, BLOCK=2**21)
    return out


def ref():
    return torch.ones(2**21)
