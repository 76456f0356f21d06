"""Lanes past the end are 0, and so is the product."""

import torch
import triton
import triton.language as tl

FINDS = {"wrong-value": ["*"]}


@triton.jit
def _mul(a, b):
    return a * b


@triton.jit
def prod(x_ptr, out_ptr, n, B: tl.constexpr):
    o = tl.arange(0, B)
    x = tl.load(x_ptr + o, mask=o < n, other=0.0)
    tl.store(out_ptr, tl.reduce(x, 0, _mul))  # here: wrong-value


def data():
    torch.manual_seed(1)
    return torch.rand(10) + 1


def run(dev):
    x = data().to(dev)
    out = torch.empty(1, device=dev)
    prod[(1,)](x, out, 10, B=16)
    return out


def ref():
    return data().prod().reshape(1)
