"""Offsets are computed from rows of 16 bits, whose products with the stride do not fit these."""

import torch
import triton
import triton.language as tl

FINDS = {"int-overflow": ["*"], "out-of-bounds": ["*"]}


@triton.jit
def first_column(x_ptr, rows_ptr, out_ptr, stride, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    at = tl.load(rows_ptr + i) * stride.to(tl.int16)  # here: int-overflow
    tl.store(out_ptr + i, tl.load(x_ptr + at))  # here: out-of-bounds


def data():
    return torch.arange(64000.0).reshape(64, 1000), torch.arange(64, dtype=torch.int16)


def run(dev):
    x, rows = (t.to(dev) for t in data())
    out = torch.empty(64, device=dev)
    first_column[(1,)](x, rows, out, 1000, BLOCK=64)
    return out


def ref():
    return data()[0][:, 0].clone()
