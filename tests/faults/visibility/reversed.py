"""A block is stored and read back in reverse by the same program, with no barrier between."""

import torch
import triton
import triton.language as tl

FINDS = {"missing-barrier": ["*"]}
PASSES = ["cuda:90", "interpreter"]


@triton.jit
def reverse(x_ptr, scratch_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(scratch_ptr + offsets, tl.load(x_ptr + offsets))
    tl.store(out_ptr + offsets, tl.load(scratch_ptr + BLOCK - 1 - offsets))  # here: missing-barrier


def data():
    return torch.arange(256, dtype=torch.float32)


def run(dev):
    x = data().to(dev)
    out = torch.empty_like(x)
    reverse[(1,)](x, torch.empty_like(x), out, BLOCK=256)
    return out


def ref():
    return data().flip(0)
