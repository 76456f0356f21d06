"""A kernel that is called without one of its arguments."""

import torch
import triton
import triton.language as tl

FINDS = {"launch-error": ["interpreter"], "compile-error": ["cuda:90", "hip:gfx942"]}


@triton.jit
def scale(x_ptr, out_ptr, factor, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=offsets < n) * factor, mask=offsets < n)


def data():
    return torch.arange(20.0)


def run(dev):
    x = data().to(dev)
    out = torch.empty_like(x)
    scale[(1,)](x, out, 2.0, BLOCK=32)
    return out


def ref():
    return data() * 2
