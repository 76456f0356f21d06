"""A grid of rows by columns, and a kernel that takes axis 0 for columns."""

import torch
import triton
import triton.language as tl

FINDS = {"wrong-value": ["*"]}


@triton.jit
def copy(x_ptr, out_ptr, M, N, BLOCK: tl.constexpr):
    rows = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    columns = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    at = rows[:, None] * N + columns[None, :]
    mask = (rows[:, None] < M) & (columns[None, :] < N)
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=mask), mask=mask)


def data():
    torch.manual_seed(2)
    return torch.randn(64, 16)


def run(dev):
    x = data().to(dev)
    out = torch.zeros_like(x)
    copy[(triton.cdiv(64, 16), triton.cdiv(16, 16))](x, out, 64, 16, BLOCK=16)
    return out


def ref():
    return data()
