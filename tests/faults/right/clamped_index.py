"""Lanes past the end read the last element again, and the last block begins earlier: equal values are stored twice."""

import torch
import triton
import triton.language as tl

FINDS = {}
PASSES = ["interpreter", "cuda:75", "cuda:90", "hip:gfx90a", "hip:gfx942"]


@triton.jit
def triple(x_ptr, out_ptr, n_elements, BLOCK: tl.constexpr):
    first = tl.minimum(tl.program_id(0) * BLOCK, n_elements - BLOCK)
    offsets = first + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + tl.minimum(offsets, n_elements - 1))
    tl.store(out_ptr + offsets, 3 * x)


def data():
    return torch.randn(100)


def run(dev):
    x = data().to(dev)
    out = torch.empty_like(x)
    triple[(2,)](x, out, 100, BLOCK=64)
    return out


def ref():
    return 3 * data()
