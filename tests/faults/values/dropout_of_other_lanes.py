"""The backward pass draws its mask at other offsets than the forward pass."""

import torch
import triton
import triton.language as tl

FINDS = {"wrong-value": ["*"]}


@triton.jit
def drop(x_ptr, out_ptr, seed, p, n, B: tl.constexpr, SHIFT: tl.constexpr):
    o = tl.program_id(0) * B + tl.arange(0, B)
    keep = tl.rand(seed, o + SHIFT) > p
    tl.store(out_ptr + o, tl.where(keep, tl.load(x_ptr + o, mask=o < n), 0.0) / (1 - p), mask=o < n)


def data():
    return torch.ones(100)


def run(dev):
    x = data().to(dev)
    a, b = torch.empty_like(x), torch.empty_like(x)
    drop[(7,)](x, a, 3, 0.5, 100, B=16, SHIFT=0)
    drop[(7,)](x, b, 3, 0.5, 100, B=16, SHIFT=1)
    return ((a > 0) == (b > 0)).all()


def ref():
    return torch.tensor(True)
