"""A shift in place: a program's first input is its neighbour's output."""

import torch
import triton
import triton.language as tl

FINDS = {"race": ["*"]}


@triton.jit
def shift(x_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets + 1 < n
    x = tl.load(x_ptr + offsets + 1, mask=mask, other=0.0)  # here: race
    tl.store(x_ptr + offsets, x, mask=offsets < n)


def data():
    return torch.arange(1, 101, dtype=torch.float32)


def run(dev):
    x = data().to(dev).clone()
    shift[(4,)](x, 100, BLOCK=32)
    return x


def ref():
    return torch.cat([data()[1:], torch.zeros(1)])
