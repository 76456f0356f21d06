"""None is passed for a tensor that is loaded all the same."""

import torch
import triton
import triton.language as tl

FINDS = {"compile-error": ["interpreter", "cuda:90"]}


@triton.jit
def add(x_ptr, b_ptr, out_ptr, B: tl.constexpr):
    o = tl.arange(0, B)
    tl.store(out_ptr + o, tl.load(x_ptr + o) + tl.load(b_ptr + o))  # here: compile-error


def data():
    return torch.arange(16.0)


def run(dev):
    x = data().to(dev)
    out = torch.empty_like(x)
    add[(1,)](x, None, out, B=16)
    return out


def ref():
    return data()
