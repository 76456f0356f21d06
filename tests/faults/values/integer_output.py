"""The output is made like the input, which is of integers, and halves are stored there."""

import torch
import triton
import triton.language as tl

FINDS = {"wrong-value": ["*"]}


@triton.jit
def half(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i) * 0.5)


def data():
    return torch.arange(16, dtype=torch.int32)


def run(dev):
    x = data().to(dev)
    out = torch.empty_like(x)
    half[(1,)](x, out, BLOCK=16)
    return out


def ref():
    return data() * 0.5
