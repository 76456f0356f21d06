"""An index that should wrap round at 0: the remainder of a negative number is negative."""

import torch
import triton
import triton.language as tl

FINDS = {"mixed-signs": ["*"], "out-of-bounds": ["*"]}


@triton.jit
def rotate(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    mask = offsets < n
    before = (offsets - 1) % n  # here: mixed-signs
    tl.store(out_ptr + offsets, tl.load(x_ptr + before, mask=mask), mask=mask)  # here: out-of-bounds


def data():
    return torch.arange(50, dtype=torch.float32)


def run(dev):
    x = data().to(dev)
    out = torch.empty_like(x)
    rotate[(1,)](x, out, 50, BLOCK=64)
    return out


def ref():
    return data().roll(1)
