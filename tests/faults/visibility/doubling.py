"""A running sum in memory, in steps that double, with nothing between a step's stores and the next one's loads."""

import torch
import triton
import triton.language as tl

FINDS = {"missing-barrier": ["*"]}


@triton.jit
def running_sum(x_ptr, N: tl.constexpr, STEPS: tl.constexpr):
    i = tl.arange(0, N)
    for step in tl.static_range(STEPS):
        before = tl.load(x_ptr + i - (1 << step), mask=i >= (1 << step), other=0.0)  # here: missing-barrier
        tl.store(x_ptr + i, tl.load(x_ptr + i) + before)  # here: missing-barrier


def data():
    return torch.randn(32)


def run(dev):
    x = data().to(dev).clone()
    running_sum[(1,)](x, N=32, STEPS=5)
    return x


def ref():
    return data().cumsum(0)
