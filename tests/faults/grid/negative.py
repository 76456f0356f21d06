"""A grid that is negative for a short input."""

import torch
import triton
import triton.language as tl

FINDS = {"wrong-value": ["*"]}


@triton.jit
def fill(out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, 1.0, mask=offsets < n)


def run(dev):
    out = torch.zeros(10, device=dev)
    fill[((10 - 128) // 64,)](out, 10, BLOCK=64)
    return out


def ref():
    return torch.ones(10)
