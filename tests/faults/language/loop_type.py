"""A variable that is an integer before a loop and a float after its first turn."""

import torch
import triton
import triton.language as tl

FINDS = {"compile-error": ["cuda:90", "hip:gfx942"]}


@triton.jit
def mean(x_ptr, out_ptr, n):
    total = 0
    for i in range(n):
        total += tl.load(x_ptr + i)
    tl.store(out_ptr, total / n)


def data():
    return torch.arange(10, dtype=torch.float32)


def run(dev):
    out = torch.empty(1, device=dev)
    mean[(1,)](data().to(dev), out, 10)
    return out


def ref():
    return data().mean().reshape(1)
