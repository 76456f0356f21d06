"""An exchange of float64 aborts the compiler of newer AMD targets."""

import torch
import triton
import triton.language as tl

FINDS = {"crash": ["hip:gfx942"]}
PASSES = ["cuda:90", "interpreter"]


@triton.jit
def swap(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    old = tl.atomic_xchg(x_ptr + offsets, tl.full((BLOCK,), 2.0, tl.float64))
    tl.store(out_ptr + offsets, old)


def data():
    return torch.arange(32, dtype=torch.float64)


def run(dev):
    x = data().to(dev)
    out = torch.empty_like(x)
    swap[(1,)](x, out, BLOCK=32)
    return out


def ref():
    return data()
