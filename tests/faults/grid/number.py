"""A number for a grid, which is a tuple."""

import torch
import triton
import triton.language as tl

FINDS = {"launch-error": ["interpreter", "cuda:90", "hip:gfx942"]}


@triton.jit
def scale(x_ptr, out_ptr, B: tl.constexpr):
    o = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out_ptr + o, tl.load(x_ptr + o) * 2)


def data():
    return torch.arange(64.0)


def run(dev):
    x = data().to(dev)
    out = torch.empty_like(x)
    scale[4](x, out, B=16)  # here: launch-error
    return out


def ref():
    return data() * 2
