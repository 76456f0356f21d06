"""A loop that is left by return: the interpreter does, no compiler takes it."""

import torch
import triton
import triton.language as tl

FINDS = {"compile-error": ["cuda:90", "hip:gfx942"]}
PASSES = ["interpreter"]


@triton.jit
def find(x_ptr, out_ptr, n):
    for i in range(n):
        if tl.load(x_ptr + i) > 5.0:  # here: compile-error
            tl.store(out_ptr, i)
            return
    tl.store(out_ptr, -1)


def data():
    return torch.arange(20.0)


def run(dev):
    x = data().to(dev)
    out = torch.empty(1, dtype=torch.int32, device=dev)
    find[(1,)](x, out, 20)
    return out


def ref():
    return torch.tensor([6], dtype=torch.int32)
