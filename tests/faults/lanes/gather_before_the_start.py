"""A shift by a gather whose first index is -1, and nothing throws that lane away."""

import torch
import triton
import triton.language as tl

FINDS = {"gather-index": ["*"], "undefined-lanes": ["*"]}
PASSES = ["cuda:90"]


@triton.jit
def differences(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    before = tl.gather(x, i - 1, 0)  # here: gather-index
    tl.store(out_ptr + i, x - before)  # here: undefined-lanes


def data():
    return torch.arange(32.0) ** 2


def run(dev):
    x = data().to(dev)
    out = torch.empty_like(x)
    differences[(1,)](x, out, BLOCK=32)
    return out


def ref():
    return torch.diff(data(), prepend=torch.zeros(1))
