"""Reductions of all axes at once: the language flattens the block in any order, which no sum or maximum can tell."""

import torch
import triton
import triton.language as tl

FINDS = {}
PASSES = ["cuda:90", "hip:gfx942", "interpreter"]
LACKS = {"reorders": ["cuda:90", "hip:gfx942"]}


@triton.jit
def extremes(x_ptr, out_ptr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, ROWS)[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :])
    tl.store(out_ptr, tl.max(x))
    tl.store(out_ptr + 1, tl.min(x))
    tl.store(out_ptr + 2, tl.sum(x * x))


def data():
    return torch.linspace(-3, 2, 256).reshape(8, 32)


def run(dev):
    out = torch.empty(3, device=dev)
    extremes[(1,)](data().to(dev), out, ROWS=8, COLUMNS=32)
    return out


def ref():
    x = data()
    return torch.stack([x.max(), x.min(), (x * x).sum()])
