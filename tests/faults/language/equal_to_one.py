"""A size of 1 is taken for a constant, which has no methods."""

import torch
import triton
import triton.language as tl

FINDS = {"compile-error": ["cuda:90", "hip:gfx942"]}


@triton.jit
def copy(x_ptr, out_ptr, stride, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    wide = stride.to(tl.int64)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets * wide, mask=offsets < n), mask=offsets < n)


def data():
    return torch.arange(16, dtype=torch.float32)


def run(dev):
    x = data().to(dev)
    out = torch.empty_like(x)
    copy[(1,)](x, out, x.stride(0), 16, BLOCK=16)
    return out


def ref():
    return data()
