"""A name that one branch alone defines."""

import torch
import triton
import triton.language as tl

FINDS = {"compile-error": ["cuda:90", "hip:gfx942"]}
PASSES = ["interpreter"]


@triton.jit
def scale(x_ptr, out_ptr, n, B: tl.constexpr):
    o = tl.arange(0, B)
    if n > 8:
        f = 2.0
    tl.store(out_ptr + o, f * tl.load(x_ptr + o))  # here: compile-error


def data():
    return torch.arange(16.0)


def run(dev):
    x = data().to(dev)
    out = torch.empty_like(x)
    scale[(1,)](x, out, 16, B=16)
    return out


def ref():
    return data() * 2
