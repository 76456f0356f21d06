"""Lanes past the end are 0, which is below every value of the row."""

import torch
import triton
import triton.language as tl

FINDS = {"wrong-value": ["*"]}


@triton.jit
def least(x_ptr, out_ptr, n, B: tl.constexpr):
    o = tl.arange(0, B)
    x = tl.load(x_ptr + tl.program_id(0) * n + o, mask=o < n, other=0.0)
    tl.store(out_ptr + tl.program_id(0), tl.min(x, 0))  # here: wrong-value


def data():
    torch.manual_seed(1)
    return torch.rand(4, 10) + 1


def run(dev):
    x = data().to(dev)
    out = torch.empty(4, device=dev)
    least[(4,)](x, out, 10, B=16)
    return out


def ref():
    return data().amin(1)
