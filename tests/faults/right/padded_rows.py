"""Rows are stored whole, padding and all, where the output has room for it."""

import torch
import triton
import triton.language as tl

FINDS = {}
PASSES = ["interpreter"]


@triton.jit
def scale(x_ptr, out_ptr, so, N, B: tl.constexpr):
    r = tl.program_id(0).to(tl.int64)
    o = tl.arange(0, B)
    x = tl.load(x_ptr + r * N + o, mask=o < N, other=0.0)
    tl.store(out_ptr + r * so + o, 2 * x)


def data():
    torch.manual_seed(1)
    return torch.randn(5, 10)


def run(dev):
    x = data().to(dev)
    out = torch.empty(5, 16, device=dev)
    scale[(5,)](x, out, 16, 10, B=16)
    return out[:, :10]


def ref():
    return 2 * data()
