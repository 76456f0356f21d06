"""Tuples, functions as arguments, loops downwards, an early return, a constant among the globals."""

import torch
import triton
import triton.language as tl

FINDS = {}
PASSES = ["cuda:90", "hip:gfx942", "interpreter"]

WIDTH = tl.constexpr(16)


@triton.jit
def both(x, y):
    return x - y, x + y


@triton.jit
def apply(f: tl.constexpr, x, y):
    return f(x, y)


@triton.jit
def kernel(x_ptr, out_ptr, sizes, n, FLAG: tl.constexpr = None):
    o = tl.arange(0, WIDTH)
    if tl.program_id(0) * WIDTH >= n:
        return
    at = tl.program_id(0) * WIDTH + o
    x = tl.load(x_ptr + at, mask=at < n, other=0.0)
    total = tl.zeros_like(x)
    for i in range(sizes[0], 0, -1):
        total += x * i
    i = 3
    while i > 0:
        total += 1.0
        i -= 1
    for j in tl.static_range(2):
        if j == 1 and FLAG is None:
            total *= 2
    low, high = apply(both, total, x)
    p = (low, high)
    tl.store(out_ptr + at, p[0] + p[1] * sizes[1], mask=at < n)


def data():
    return torch.arange(40.0)


def run(dev):
    x = data().to(dev)
    out = torch.empty_like(x)
    kernel[(4,)](x, out, (3, 2), 40)
    return out


def ref():
    x = data()
    t = (x * 6 + 3) * 2
    return (t - x) + 2 * (t + x)
