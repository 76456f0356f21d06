"""A linear recurrence scanned over its values alone."""

import torch
import triton
import triton.language as tl

FINDS = {"reduce-order": ["*"]}


@triton.jit
def decayed(a, b):
    return a * 0.5 + b


@triton.jit
def smooth(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    tl.store(out_ptr + offsets, tl.associative_scan(x, 0, decayed))  # here: reduce-order


def data():
    torch.manual_seed(10)
    return torch.rand(32)


def run(dev):
    x = data().to(dev)
    out = torch.empty_like(x)
    smooth[(1,)](x, out, BLOCK=32)
    return out


def ref():
    made, state = [], torch.zeros(())
    for value in data():
        state = state * 0.5 + value
        made.append(state)
    return torch.stack(made)
