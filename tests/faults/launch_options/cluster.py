"""A cluster of two programs, on what has no clusters."""

import torch
import triton
import triton.language as tl

FINDS = {"compile-error": ["cuda:80", "hip:gfx942"]}


@triton.jit
def fill(out_ptr, BLOCK: tl.constexpr):
    tl.store(out_ptr + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), 1.0)


def run(dev):
    out = torch.empty(256, device=dev)
    fill[(2,)](out, BLOCK=128, num_ctas=2)
    return out


def ref():
    return torch.ones(256)
