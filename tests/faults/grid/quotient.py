"""A grid by a division that is not rounded to a whole number."""

import torch
import triton
import triton.language as tl

FINDS = {"launch-error": ["interpreter", "cuda:90", "hip:gfx942"]}


@triton.jit
def fill(out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, 1.0, mask=offsets < n)


def run(dev):
    out = torch.empty(256, device=dev)
    fill[(256 / 128,)](out, 256, BLOCK=128)
    return out


def ref():
    return torch.ones(256)
