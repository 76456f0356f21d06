"""An assertion of the kernel that does not hold."""

import torch
import triton
import triton.language as tl

FINDS = {"false-assertion": ["*"]}


@triton.jit
def copy(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.device_assert(offsets < n, "past the end")
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=offsets < n, other=0.0), mask=offsets < n)


def data():
    return torch.arange(20.0)


def run(dev):
    x = data().to(dev)
    out = torch.empty_like(x)
    copy[(1,)](x, out, 20, BLOCK=32)
    return out


def ref():
    return data()
