"""tl.softmax of a block of rows without an axis: it normalises columns."""

import torch
import triton
import triton.language as tl

FINDS = {"wrong-value": ["*"], "TP307": ["*"]}
PASSES = ["cuda:90", "hip:gfx942"]


@triton.jit
def softmax(x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    y = tl.softmax(tl.load(x_ptr + at))  # here: TP307
    tl.store(out_ptr + at, y)  # here: wrong-value


def data():
    torch.manual_seed(31)
    return torch.randn(8, 16)


def run(dev):
    x = data().to(dev)
    out = torch.empty_like(x)
    softmax[(1,)](x, out, M=8, N=16)
    return out


def ref():
    return torch.softmax(data(), -1)
