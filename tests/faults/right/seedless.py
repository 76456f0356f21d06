"""Inputs without a seed of their own: each call of run and ref is given the same ones."""

import torch
import triton
import triton.language as tl

FINDS = {}
PASSES = ["cuda:90", "hip:gfx942", "interpreter"]


@triton.jit
def add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x, y = tl.load(x_ptr + offsets, mask=mask), tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)


def data():
    return torch.randn(777), torch.randn(777)


def run(dev):
    x, y = (t.to(dev) for t in data())
    out = torch.empty_like(x)
    add[(4,)](x, y, out, 777, BLOCK=256)
    return out


def ref():
    x, y = data()
    return x + y
