"""A number of warps that is no power of two."""

import torch
import triton
import triton.language as tl

FINDS = {"not-a-power-of-two": ["cuda:90", "hip:gfx942"]}


@triton.jit
def fill(out_ptr, BLOCK: tl.constexpr):
    tl.store(out_ptr + tl.arange(0, BLOCK), 1.0)


def run(dev):
    out = torch.empty(128, device=dev)
    fill[(1,)](out, BLOCK=128, num_warps=3)
    return out


def ref():
    return torch.ones(128)
