"""Both products round to the same number, so that their difference is 0: fused, it is below 0, and has no root."""

import torch
import triton
import triton.language as tl

FINDS = {"fused-product": ["cuda:75", "cuda:90", "hip:gfx942", "hip:gfx1201"]}
PASSES = ["cuda:90", "hip:gfx942", "interpreter"]
LACKS = {"fused-product": ["interpreter"]}


@triton.jit
def roots(a_ptr, b_ptr, c_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    a, b, c = tl.load(a_ptr + i), tl.load(b_ptr + i), tl.load(c_ptr + i)
    tl.store(out_ptr + i, tl.sqrt(b * b - 4.0 * a * c))  # here: fused-product


def data():
    b = torch.rand(64) + 1.0
    return b * 0.5, b, b * 0.5


def run(dev):
    a, b, c = (t.to(dev) for t in data())
    out = torch.empty_like(a)
    roots[(1,)](a, b, c, out, BLOCK=64)
    return out


def ref():
    return torch.zeros(64)
