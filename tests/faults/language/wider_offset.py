"""An offset of 32 bits that a loop adds 64 bits to."""

import torch
import triton
import triton.language as tl

FINDS = {"compile-error": ["cuda:90", "hip:gfx942"]}
PASSES = ["interpreter"]


@triton.jit
def total(x_ptr, out_ptr, stride, n, B: tl.constexpr):
    at = 0
    s = tl.zeros((B,), tl.float32)
    for _ in range(n):  # here: compile-error
        s += tl.load(x_ptr + at + tl.arange(0, B))
        at += stride.to(tl.int64)
    tl.store(out_ptr + tl.arange(0, B), s)


def data():
    return torch.arange(80.0)


def run(dev):
    x = data().to(dev)
    out = torch.empty(16, device=dev)
    total[(1,)](x, out, 16, 5, B=16)
    return out


def ref():
    return data().reshape(5, 16).sum(0)
