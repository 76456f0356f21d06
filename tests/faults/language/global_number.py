"""A kernel that reads a global number, which is no constant of the language."""

import torch
import triton
import triton.language as tl

FINDS = {"compile-error": ["cuda:90", "hip:gfx942"]}


SCALE = 4


@triton.jit
def scaled(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets) * SCALE)


def data():
    return torch.arange(16, dtype=torch.float32)


def run(dev):
    x = data().to(dev)
    out = torch.empty_like(x)
    scaled[(1,)](x, out, BLOCK=16)
    return out


def ref():
    return data() * 4
