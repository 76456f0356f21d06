"""Lanes past the end of a row are summed, although the load gives them no value."""

import torch
import triton
import triton.language as tl

FINDS = {"undefined-lanes": ["*"], "TP404": ["*"]}
PASSES = ["cuda:90"]


@triton.jit
def row_sum(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    row, offsets = tl.program_id(0).to(tl.int64), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + offsets, mask=offsets < n)
    tl.store(out_ptr + row, tl.sum(x, 0))  # here: undefined-lanes, TP404


def data():
    torch.manual_seed(7)
    return torch.rand(4, 50)


def run(dev):
    out = torch.empty(4, device=dev)
    row_sum[(4,)](data().to(dev), out, 50, BLOCK=64)
    return out


def ref():
    return data().sum(1)
