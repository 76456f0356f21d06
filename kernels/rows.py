"""What kernels over rows share: how many rows a program holds, the sum over all rows, and samples of rows."""

import functools

import torch
import triton
import triton.language as tl

from portability.kernel import Blocks, Draw, cdiv, next_power_of_2


@triton.jit
def column_sum_kernel(x_ptr, out_ptr, M, N, stride_xm, rows_per_program, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """Row p of out = Σ x over the p-th share of the rows, for BLOCK_N columns."""
    columns = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    first = tl.program_id(1).to(tl.int64) * rows_per_program
    last = tl.minimum(first + rows_per_program, M)
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(first, last, BLOCK_M):
        rows = start + tl.arange(0, BLOCK_M)[:, None]
        mask = (rows < last) & (columns[None, :] < N)
        total += tl.load(x_ptr + rows * stride_xm + columns[None, :], mask=mask, other=0.0).to(tl.float32)
    out_ptrs = out_ptr + tl.program_id(1).to(tl.int64) * N + columns
    tl.store(out_ptrs, tl.sum(total, axis=0).to(out_ptr.dtype.element_ty), mask=columns < N)


def column_sum(x, out):
    """Write the sum over the rows of x of (M, N), dense in a row, into `out` of (N,): in two stages if many."""
    M, N = x.shape
    if not N:
        return
    programs = min(cdiv(M, 256), 128) or 1  # a sum of no rows is 0, and is written
    columns = cdiv(N, 128)
    rows = cdiv(M, programs)
    parts = out if programs == 1 else x.new_empty((programs, N), dtype=torch.float32)
    column_sum_kernel[(columns, programs)](x, parts, M, N, x.stride(0), rows, BLOCK_M=32, BLOCK_N=128)
    if programs > 1:
        column_sum_kernel[(columns, 1)](parts, out, programs, N, N, programs, BLOCK_M=32, BLOCK_N=128)


@functools.lru_cache(maxsize=1024)
def whole_rows(N, blocks):
    """Return BLOCK_M, BLOCK_N and num_warps for programs that hold whole rows of N: several, where they are short."""
    BLOCK_N = next_power_of_2(N)
    BLOCK_M = max(1, blocks["TILE"] // BLOCK_N)
    num_warps = min(blocks["num_warps"], max(1, BLOCK_M * BLOCK_N // 512))  # 16 elements a thread, at the least
    return Blocks(BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, num_warps=num_warps)


@functools.lru_cache(maxsize=1024)
def pieces_of_rows(blocks):
    """Return BLOCK_N, num_warps and num_stages for programs that go over a row in pieces."""
    return Blocks({name: blocks[name] for name in ("BLOCK_N", "num_warps", "num_stages")})


def normal_rows(*shape, mean=0.0):
    """Return what draws normal rows of `shape` around `mean`."""
    return lambda draw: draw.normal(*shape) + mean


def row_sample(difference, rows=3):
    """Return what draws rows that are `difference` longer than the longest that a program holds whole."""
    return lambda draw: draw.normal(rows, draw.blocks["ROW"] + difference)


def long_rows(draw: Draw):
    """Rows that take several blocks, the last of them ragged, far from 0."""
    return draw.normal(3, 2 * draw.blocks["ROW"] + 3) + 100.0


def rows_apart(draw: Draw):
    """Rows that do not follow each other: a slice of a larger tensor."""
    return draw.normal(9, 2, 65)[:, 0]
