"""A name that is in no version that is supported."""

import torch
import triton
import triton.language as tl

FINDS = {"TP501": ["cuda:90"], "compile-error": ["cuda:90", "hip:gfx942", "interpreter"]}


@triton.jit
def rounded(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.math.llrint(tl.load(x_ptr + offsets)).to(tl.float32))


def data():
    return torch.arange(16) / 3


def run(dev):
    x = data().to(dev)
    out = torch.empty_like(x)
    rounded[(1,)](x, out, BLOCK=16)
    return out


def ref():
    return data().round()
