"""What kernels over rows share: how many rows a program holds, the sum over all rows, and samples of rows."""

import triton
import triton.language as tl

from portability.kernel import Draw, cdiv, next_power_of_2


@triton.jit
def column_sum_kernel(part_ptr, out_ptr, P, N, BLOCK_P: tl.constexpr, BLOCK_N: tl.constexpr):
    """The second stage: out = Σ part over its P rows, for BLOCK_N columns."""
    columns = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    total = tl.zeros((BLOCK_P, BLOCK_N), tl.float32)
    for start in range(0, P, BLOCK_P):
        rows = start + tl.arange(0, BLOCK_P).to(tl.int64)[:, None]
        mask = (rows < P) & (columns[None, :] < N)
        total += tl.load(part_ptr + rows * N + columns[None, :], mask=mask, other=0.0)
    tl.store(out_ptr + columns, tl.sum(total, axis=0).to(out_ptr.dtype.element_ty), mask=columns < N)


def column_sum(part, out):
    """Write the sum of the rows of `part`, float32 (P, N), into `out` of (N,)."""
    P, N = part.shape
    column_sum_kernel[(cdiv(N, 64),)](part, out, P, N, BLOCK_P=32, BLOCK_N=64)


def whole_rows(N, blocks):
    """Return BLOCK_M, BLOCK_N and num_warps for programs that hold whole rows of N: several, where they are short."""
    BLOCK_N = next_power_of_2(N)
    BLOCK_M = max(1, blocks["TILE"] // BLOCK_N)
    num_warps = min(blocks["num_warps"], max(1, BLOCK_M * BLOCK_N // 512))  # 16 elements a thread, at the least
    return {"BLOCK_M": BLOCK_M, "BLOCK_N": BLOCK_N, "num_warps": num_warps}


def normal_rows(*shape, mean=0.0):
    """Return what draws normal rows of `shape` around `mean`."""
    return lambda draw: draw.normal(*shape) + mean


def row_sample(difference):
    """Return what draws rows that are `difference` longer than the longest that a program holds whole."""
    return lambda draw: draw.normal(3, draw.blocks["ROW"] + difference)


def long_rows(draw: Draw):
    """Rows that take several blocks, the last of them ragged, far from 0."""
    return draw.normal(3, 2 * draw.blocks["ROW"] + 3) + 100.0


def rows_apart(draw: Draw):
    """Rows that do not follow each other: a slice of a larger tensor."""
    return draw.normal(9, 2, 65)[:, 0]
