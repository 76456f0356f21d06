"""An argmax by hand that takes the right one of equals: which is right, no target promises."""

import torch
import triton
import triton.language as tl

FINDS = {"reduce-order": ["*"]}
PASSES = ["cuda:90", "interpreter"]


@triton.jit
def _arg(a, i, b, j):
    take = a > b
    return tl.where(take, a, b), tl.where(take, i, j)


@triton.jit
def argmax(x_ptr, out_ptr, B: tl.constexpr):
    o = tl.arange(0, B)
    x = tl.load(x_ptr + o)
    _, i = tl.reduce((x, o), 0, _arg)  # here: reduce-order
    tl.store(out_ptr, i)


def data():
    return torch.tensor([1.0, 5, 2, 3, 4, 5, 0, 1] * 2)


def run(dev):
    x = data().to(dev)
    out = torch.empty(1, dtype=torch.int32, device=dev)
    argmax[(1,)](x, out, B=16)
    return out


def ref():
    return torch.tensor([13], dtype=torch.int32)
