"""A mask for rows and none for columns: each row is read into the next one, and the last past the view."""

import torch
import triton
import triton.language as tl

FINDS = {"out-of-view": ["*"]}
PASSES = ["cuda:90"]


@triton.jit
def row_sums(x_ptr, out_ptr, stride, M, N, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    rows, columns = tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    at = rows[:, None] * stride + columns[None, :]
    x = tl.load(x_ptr + at, mask=rows[:, None] < M, other=0.0)  # here: out-of-view
    x = tl.where(columns[None, :] < N, x, 0.0)
    tl.store(out_ptr + rows, tl.sum(x, 1), mask=rows < M)


def data():
    torch.manual_seed(11)
    return torch.rand(8, 64)[:5, :50]


def run(dev):
    out = torch.empty(5, device=dev)
    row_sums[(1,)](data().to(dev), out, 64, 5, 50, ROWS=8, COLUMNS=64)
    return out


def ref():
    return data().sum(1)
