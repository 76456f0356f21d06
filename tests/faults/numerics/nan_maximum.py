"""A row maximum that is to pass NaN on, and does so on some targets."""

import torch
import triton
import triton.language as tl

FINDS = {"nan-minmax": ["*"], "wrong-value": ["*"]}


@triton.jit
def largest(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=float("-inf"))
    tl.store(out_ptr, tl.max(x, 0))


def data():
    return torch.tensor([1.0, float("nan"), 2.0])


def run(dev):
    out = torch.empty(1, device=dev)
    largest[(1,)](data().to(dev), out, 3, BLOCK=4)
    return out


def ref():
    return torch.tensor([float("nan")])
