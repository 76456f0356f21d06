"""A tensor of no dimensions is a pointer, and no number."""

import torch
import triton
import triton.language as tl

FINDS = {"compile-error": ["interpreter", "cuda:90", "hip:gfx942"]}


@triton.jit
def scale(x_ptr, out_ptr, s, B: tl.constexpr):
    o = tl.arange(0, B)
    tl.store(out_ptr + o, tl.load(x_ptr + o) * s)  # here: compile-error


def data():
    return torch.arange(16.0)


def run(dev):
    x = data().to(dev)
    out = torch.empty_like(x)
    scale[(1,)](x, out, x.max(), B=16)
    return out


def ref():
    return data() * 15
