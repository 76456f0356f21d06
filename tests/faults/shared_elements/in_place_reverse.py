"""A reversal in place: what one program reads another has written."""

import torch
import triton
import triton.language as tl

FINDS = {"race": ["*"]}


@triton.jit
def reverse(x_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + n - 1 - offsets)  # here: race
    tl.store(x_ptr + offsets, x)


def data():
    return torch.arange(64, dtype=torch.float32)


def run(dev):
    x = data().to(dev)
    reverse[(2,)](x, 64, BLOCK=32)
    return x


def ref():
    return data().flip(0)
