"""A mean that is stored into integers."""

import torch
import triton
import triton.language as tl

FINDS = {"wrong-value": ["*"], "mixed-signs": ["*"]}


@triton.jit
def mean(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, BLOCK), mask=tl.arange(0, BLOCK) < n, other=0)
    tl.store(out_ptr, tl.sum(x, 0) // n)


def data():
    return torch.tensor([-3, 1, 1], dtype=torch.int32)


def run(dev):
    out = torch.empty(1, dtype=torch.int32, device=dev)
    mean[(1,)](data().to(dev), out, 3, BLOCK=4)
    return out


def ref():
    return torch.tensor([-1], dtype=torch.int32)
