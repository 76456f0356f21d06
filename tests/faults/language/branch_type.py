"""A number that is a float in one branch and an integer in the other."""

import torch
import triton
import triton.language as tl

FINDS = {"compile-error": ["cuda:90", "hip:gfx942"]}
PASSES = ["interpreter"]


@triton.jit
def pick(x_ptr, out_ptr, n, B: tl.constexpr):
    o = tl.arange(0, B)
    x = tl.load(x_ptr + o, mask=o < n, other=0.0)
    if n > 10:  # noqa: SIM108  # here: compile-error
        s = tl.sum(x, 0)
    else:
        s = 0
    tl.store(out_ptr, s)


def data():
    return torch.arange(20.0)


def run(dev):
    x = data().to(dev)
    out = torch.empty(1, device=dev)
    pick[(1,)](x, out, 20, B=32)
    return out


def ref():
    return data().sum().reshape(1)
