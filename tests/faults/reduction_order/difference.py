"""A reduction by a difference, whose result depends on how a target groups."""

import torch
import triton
import triton.language as tl

FINDS = {"reduce-order": ["*"]}


@triton.jit
def minus(a, b):
    return a - b


@triton.jit
def alternate(x_ptr, out_ptr, BLOCK: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, BLOCK))
    tl.store(out_ptr, tl.reduce(x, 0, minus))  # here: reduce-order


def data():
    return torch.tensor([1.0, 2.0, 4.0, 8.0])


def run(dev):
    out = torch.empty(1, device=dev)
    alternate[(1,)](data().to(dev), out, BLOCK=4)
    return out
