"""A row of 65,536 floats on four warps: 512 registers a thread."""

import torch
import triton
import triton.language as tl

FINDS = {"register-spills": ["cuda:80"]}
PASSES = ["cuda:80", "interpreter"]


@triton.jit
def softmax(x_ptr, out_ptr, n, BLOCK: tl.constexpr):  # here: register-spills
    i = tl.arange(0, BLOCK)
    mask = i < n
    x = tl.load(x_ptr + i, mask=mask, other=float("-inf"))
    e = tl.exp(x - tl.max(x, 0))
    tl.store(out_ptr + i, e / tl.sum(e, 0), mask=mask)


def data():
    torch.manual_seed(60)
    return torch.randn(60_000)


def run(dev):
    x = data().to(dev)
    out = torch.empty_like(x)
    softmax[(1,)](x, out, 60_000, BLOCK=65536)
    return out


def ref():
    return torch.softmax(data(), 0)
