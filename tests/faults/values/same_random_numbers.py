"""Every program draws the same random numbers."""

import torch
import triton
import triton.language as tl

FINDS = {"wrong-value": ["*"]}


@triton.jit
def noise(out_ptr, n, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    offsets = tl.program_id(0) * BLOCK + lanes
    tl.store(out_ptr + offsets, tl.rand(7, lanes), mask=offsets < n)


def run(dev):
    out = torch.empty(512, device=dev)
    noise[(4,)](out, 512, BLOCK=128)
    return (out.reshape(4, 128).unique().numel() == 512) + torch.zeros(1, dtype=torch.int32, device=dev)


def ref():
    return torch.ones(1, dtype=torch.int32)
