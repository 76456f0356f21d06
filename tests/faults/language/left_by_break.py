"""A loop that is left by break: the interpreter does, no compiler takes it."""

import torch
import triton
import triton.language as tl

FINDS = {"compile-error": ["cuda:90", "hip:gfx942"]}


@triton.jit
def first_zero(x_ptr, out_ptr, n):
    found = 0
    for i in range(n):
        if tl.load(x_ptr + i) == 0:
            break
        found += 1
    tl.store(out_ptr, found)


def data():
    return torch.tensor([3, 2, 0, 1], dtype=torch.int32)


def run(dev):
    out = torch.empty(1, dtype=torch.int32, device=dev)
    first_zero[(1,)](data().to(dev), out, 4)
    return out


def ref():
    return torch.tensor([2], dtype=torch.int32)
