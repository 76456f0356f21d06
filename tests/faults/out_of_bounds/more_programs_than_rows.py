"""A grid of whole waves, and no test for rows that are not there."""

import torch
import triton
import triton.language as tl

FINDS = {"out-of-bounds": ["*"]}


@triton.jit
def rows(x_ptr, out_ptr, n, B: tl.constexpr):
    r = tl.program_id(0)
    o = tl.arange(0, B)
    x = tl.load(x_ptr + r * n + o, mask=o < n, other=0.0)  # here: out-of-bounds
    tl.store(out_ptr + r, tl.sum(x, 0))  # here: out-of-bounds


def data():
    return torch.arange(40.0).reshape(5, 8)


def run(dev):
    x = data().to(dev)
    out = torch.empty(5, device=dev)
    rows[(8,)](x, out, 8, B=8)
    return out


def ref():
    return data().sum(1)
