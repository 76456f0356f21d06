"""A comparison that takes the limit itself: one row more."""

import torch
import triton
import triton.language as tl

FINDS = {"out-of-bounds": ["*"]}


@triton.jit
def double(x_ptr, out_ptr, M, N, BLOCK: tl.constexpr):
    rows, columns = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), tl.arange(0, BLOCK)
    at = rows[:, None] * N + columns[None, :]
    mask = (rows[:, None] <= M) & (columns[None, :] < N)
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=mask, other=0.0) * 2, mask=mask)


def data():
    torch.manual_seed(6)
    return torch.randn(20, 16)


def run(dev):
    x = data().to(dev)
    out = torch.empty_like(x)
    double[(2,)](x, out, 20, 16, BLOCK=16)
    return out


def ref():
    return data() * 2
