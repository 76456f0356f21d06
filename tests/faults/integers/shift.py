"""A shift by the number of a lane, up to 63, of 32 bits."""

import torch
import triton
import triton.language as tl

FINDS = {"shift-width": ["*"]}


@triton.jit
def bits(out_ptr, BLOCK: tl.constexpr):
    lane = tl.arange(0, BLOCK)
    tl.store(out_ptr + lane, 1 << lane)  # here: shift-width


def run(dev):
    out = torch.empty(64, dtype=torch.int32, device=dev)
    bits[(1,)](out, BLOCK=64)
    return out
