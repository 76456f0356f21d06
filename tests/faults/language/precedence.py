"""A mask of two comparisons joined by & without parentheses: & binds first."""

import torch
import triton
import triton.language as tl

FINDS = {"wrong-value": ["*"]}


@triton.jit
def middle(x_ptr, out_ptr, low, high, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    mask = offsets >= low & offsets < high
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask, other=0.0))


def data():
    return torch.arange(1.0, 33.0)


def run(dev):
    x = data().to(dev)
    out = torch.empty_like(x)
    middle[(1,)](x, out, 5, 20, BLOCK=32)
    return out


def ref():
    x = data()
    x[:5] = 0
    x[20:] = 0
    return x
