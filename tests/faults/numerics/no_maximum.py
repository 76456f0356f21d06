"""A softmax without its maximum, right for small scores."""

import torch
import triton
import triton.language as tl

FINDS = {"wrong-value": ["*"]}


@triton.jit
def softmax(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    columns = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + tl.program_id(0) * n + columns, mask=columns < n, other=float("-inf"))
    e = tl.exp(x)
    tl.store(out_ptr + tl.program_id(0) * n + columns, e / tl.sum(e, 0), mask=columns < n)  # here: wrong-value


def data():
    torch.manual_seed(14)
    return torch.randn(3, 50) * 60


def run(dev):
    x = data().to(dev)
    out = torch.empty_like(x)
    softmax[(3,)](x, out, 50, BLOCK=64)
    return out


def ref():
    return torch.softmax(data().double(), 1)
