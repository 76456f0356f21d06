"""A block of zeros with a side of 24."""

import torch
import triton
import triton.language as tl

FINDS = {"not-a-power-of-two": ["cuda:90", "hip:gfx942", "interpreter"]}


@triton.jit
def row_sums(x_ptr, out_ptr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    rows = tl.arange(0, 32)
    total = tl.zeros((32, COLUMNS), tl.float32)  # here: not-a-power-of-two
    columns = tl.arange(0, 32)
    inside = (rows[:, None] < ROWS) & (columns[None, :] < COLUMNS)
    total += tl.load(x_ptr + rows[:, None] * COLUMNS + columns[None, :], mask=inside, other=0.0)
    tl.store(out_ptr + rows, tl.sum(total, 1), mask=rows < ROWS)


def data():
    return torch.ones(20, 24)


def run(dev):
    x = data().to(dev)
    out = torch.empty(20, device=dev)
    row_sums[(1,)](x, out, ROWS=20, COLUMNS=24)
    return out


def ref():
    return data().sum(1)
