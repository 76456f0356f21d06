"""A size is assumed to be a multiple of 64, and is 100."""

import torch
import triton
import triton.language as tl

FINDS = {"false-assumption": ["*"]}


@triton.jit
def negate(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    tl.assume(n % 64 == 0)  # here: false-assumption
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, -tl.load(x_ptr + offsets, mask=offsets < n), mask=offsets < n)


def data():
    torch.manual_seed(8)
    return torch.rand(100)


def run(dev):
    x = data().to(dev)
    out = torch.empty_like(x)
    negate[(1,)](x, out, 100, BLOCK=128)
    return out


def ref():
    return -data()
