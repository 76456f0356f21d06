"""The same shift, whose first lane is thrown away."""

import torch
import triton
import triton.language as tl

FINDS = {}
PASSES = ["interpreter", "cuda:90", "hip:gfx942"]


@triton.jit
def differences(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    before = tl.where(i > 0, tl.gather(x, i - 1, 0), 0.0)
    tl.store(out_ptr + i, x - before)


def data():
    return torch.arange(32.0) ** 2


def run(dev):
    x = data().to(dev)
    out = torch.empty_like(x)
    differences[(1,)](x, out, BLOCK=32)
    return out


def ref():
    return torch.diff(data(), prepend=torch.zeros(1))
