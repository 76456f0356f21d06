"""A launch option that no backend has: the interpreter takes it silently."""

import torch
import triton
import triton.language as tl

FINDS = {"unknown-option": ["cuda:90", "hip:gfx942"]}
PASSES = ["interpreter"]


@triton.jit
def square(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    tl.store(out_ptr + offsets, x * x)


def data():
    return torch.linspace(-2, 2, 64)


def run(dev):
    x = data().to(dev)
    out = torch.empty_like(x)
    square[(1,)](x, out, BLOCK=64, num_warp=8)  # here: unknown-option
    return out


def ref():
    return data() ** 2
