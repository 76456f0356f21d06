"""Rows that are multiples of each other: a test for 0 that holds where both products are rounded alike."""

import torch
import triton
import triton.language as tl

FINDS = {"fused-product": ["cuda:75", "cuda:90", "hip:gfx942", "hip:gfx1201"]}
PASSES = ["cuda:90", "hip:gfx942", "interpreter"]
LACKS = {"fused-product": ["interpreter"]}


@triton.jit
def singular(m_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    a, b = tl.load(m_ptr + 4 * i), tl.load(m_ptr + 4 * i + 1)
    c, d = tl.load(m_ptr + 4 * i + 2), tl.load(m_ptr + 4 * i + 3)
    determinant = a * d - b * c  # here: fused-product
    tl.store(out_ptr + i, (determinant == 0.0).to(tl.int32))


def data():
    row = torch.rand(64, 2) + 0.5
    return torch.stack((row, 2 * row), 1)


def run(dev):
    out = torch.empty(64, dtype=torch.int32, device=dev)
    singular[(1,)](data().to(dev), out, BLOCK=64)
    return out


def ref():
    return torch.ones(64, dtype=torch.int32)
