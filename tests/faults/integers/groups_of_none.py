"""Heads a group by a division that gives 0 for fewer heads than groups."""

import torch
import triton
import triton.language as tl

FINDS = {"div-by-zero": ["*"]}


@triton.jit
def rep(x_ptr, out_ptr, per, n, B: tl.constexpr):
    o = tl.arange(0, B)
    tl.store(out_ptr + o, tl.load(x_ptr + o // per, mask=o < n), mask=o < n)  # here: div-by-zero


def data():
    return torch.arange(4.0)


def run(dev):
    x = data().to(dev)
    out = torch.empty(4, device=dev)
    rep[(1,)](x, out, 4 // 8, 4, B=4)
    return out


def ref():
    return data()[:1].expand(4).clone()
