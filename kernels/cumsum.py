"""Cumulative sum along the last dimension: out[i] = Σ_{j ≤ i} x[j], by an associative scan.

A row longer than a block is summed in three launches (reduce, then scan): the sums of all chunks, their running sums,
and the scan of each chunk on top of the sum before it. No program waits for another, which not every backend allows.
"""

import torch
import triton
import triton.language as tl

from portability.kernel import Blocks, Cost, Draw, KernelCase, Sample, Sweep, blocks_for, cdiv, powers_of_2
from portability.kernels.checks import check_dtype, check_no_gradient, rows_of

FLOATS = (torch.float32, torch.float16, torch.bfloat16, torch.float64)
INTEGERS = (torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8)


@triton.jit
def plus(a, b):
    """The scan's operation; any associative one would do."""
    return a + b


@triton.jit
def chunk_sums_kernel(x_ptr, sums_ptr, n_cols, n_chunks, stride_xm, stride_xn, BLOCK_N: tl.constexpr):
    """Each program sums one chunk of one row. One grid axis for both: the others end at 65,535 programs."""
    row, chunk = (tl.program_id(0) // n_chunks).to(tl.int64), tl.program_id(0) % n_chunks
    cols = chunk * BLOCK_N + tl.arange(0, BLOCK_N)
    x = tl.load(x_ptr + row * stride_xm + cols.to(tl.int64) * stride_xn, mask=cols < n_cols, other=0)
    total = tl.sum(x.to(sums_ptr.dtype.element_ty), axis=0)
    tl.store(sums_ptr + row * n_chunks + chunk, total)


@triton.jit
def running_sums_kernel(sums_ptr, n_chunks, BLOCK_S: tl.constexpr):
    """Each program turns the chunk sums of one row into running sums, BLOCK_S at a time."""
    row_ptr = sums_ptr + tl.program_id(0).to(tl.int64) * n_chunks
    before = tl.zeros((), dtype=sums_ptr.dtype.element_ty)
    for start in range(0, n_chunks, BLOCK_S):
        chunks = start + tl.arange(0, BLOCK_S)
        sums = tl.load(row_ptr + chunks, mask=chunks < n_chunks, other=0)
        running = tl.associative_scan(sums, axis=0, combine_fn=plus) + before
        tl.store(row_ptr + chunks, running, mask=chunks < n_chunks)
        before += tl.sum(sums, axis=0)


@triton.jit
def scan_kernel(
    x_ptr, sums_ptr, out_ptr, n_cols, n_chunks, stride_xm, stride_xn, stride_om, BLOCK_N: tl.constexpr
):  # fmt: skip
    """Each program scans one chunk of one row and adds the sum of the chunks before it."""
    row, chunk = (tl.program_id(0) // n_chunks).to(tl.int64), tl.program_id(0) % n_chunks
    cols = chunk * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * stride_xm + cols.to(tl.int64) * stride_xn, mask=mask, other=0)
    before = tl.load(sums_ptr + row * n_chunks + chunk - 1, mask=chunk > 0, other=0)
    out = tl.associative_scan(x.to(sums_ptr.dtype.element_ty), axis=0, combine_fn=plus) + before
    tl.store(out_ptr + row * stride_om + cols, out.to(out_ptr.dtype.element_ty), mask=mask)


def launch_cumsum(x, out, blocks):
    """Write the running sums of the rows of `x` (M, N) into `out`, whose rows are contiguous."""
    M, N = x.shape
    if not x.numel():
        return
    BLOCK_N, num_warps = blocks["BLOCK_N"], blocks["num_warps"]
    n_chunks = cdiv(N, BLOCK_N)
    exact = not x.dtype.is_floating_point or x.dtype is torch.float64
    sums = torch.empty((M, n_chunks), dtype=out.dtype if exact else torch.float32, device=x.device)
    if n_chunks > 1:
        chunk_sums_kernel[(M * n_chunks,)](x, sums, N, n_chunks, *x.stride(), BLOCK_N=BLOCK_N, num_warps=num_warps)
        running_sums_kernel[(M,)](sums, n_chunks, BLOCK_S=blocks["BLOCK_S"], num_warps=num_warps)
    scan_kernel[(M * n_chunks,)](
        x, sums, out, N, n_chunks, *x.stride(), out.stride(0), BLOCK_N=BLOCK_N, num_warps=num_warps
    )


def cumsum(x: torch.Tensor, blocks: Blocks | None = None) -> torch.Tensor:
    """Return the running sums of `x` along its last dimension, contiguous, as `torch.cumsum(x, -1)` does.

    x: (..., N), any strides that view as rows. float16 and bfloat16 are summed in float32; integers in int64, which is
    also the result's dtype. Raises `TypeError` for another dtype, `ValueError` for another layout.
    """
    check_dtype("cumsum", (*FLOATS, *INTEGERS), x=x)
    check_no_gradient("cumsum", x=x)
    rows = rows_of("cumsum", "x", x)
    out = torch.empty(x.shape, dtype=x.dtype if x.dtype.is_floating_point else torch.int64, device=x.device)
    launch_cumsum(rows, out.view(rows.shape), blocks or blocks_for("cumsum", x))
    return out


def cumsum_reference(x):
    return torch.cumsum(x, -1)


def _operand(*shape):
    return lambda d: (d.normal(*(n(d) if callable(n) else n for n in shape)),)


def _chunks(count, more):
    return lambda d: count * d.blocks["BLOCK_N"] + more


def _many_chunks(d: Draw):
    """So many chunks that their sums take two blocks."""
    return (d.normal(1, d.blocks["BLOCK_N"] * d.blocks["BLOCK_S"] + 1),)


def _more_chunks(d: Draw):
    """So many that their sums take three blocks, and that the first sum of the third one is used."""
    return (d.normal(1, d.blocks["BLOCK_N"] * (2 * d.blocks["BLOCK_S"] + 1) + 1),)


def _nonfinite(d: Draw):
    """What is not finite in one chunk reaches all that follow, and none before."""
    n = d.blocks["BLOCK_N"]
    x = d.normal(3, 2 * n)
    x[0, n - 1] = float("inf")
    x[1, 5], x[1, n + 9] = float("inf"), -float("inf")
    x[2, 7] = float("nan")
    return (x,)


CASE = KernelCase(
    name="cumsum",
    operator=cumsum,
    launch=launch_cumsum,
    reference=cumsum_reference,
    samples=(
        Sample("0x5", _operand(0, 5)),
        Sample("1x1", _operand(1, 1)),
        Sample("5x771", _operand(5, 771)),
        Sample("2x3x64", _operand(2, 3, 64)),
        Sample("2xblock", _operand(2, _chunks(1, 0))),
        Sample("3x3blocks-plus-17", _operand(3, _chunks(3, 17)), quick=True),
        Sample("1xmany-blocks-plus-1", _many_chunks),
        Sample("1xmore-blocks-plus-1", _more_chunks, dtypes=("float32",)),
        Sample("2x2blocks-nonfinite", _nonfinite, dtypes=("float32", "float16", "bfloat16", "float64")),
        Sample("6x48-transposed", lambda d: (d.transposed(d.normal(6, 48)),)),
        Sample("1x67108864", _operand(1, 1 << 26), bench=True, dtypes=("float32",)),
        Sample("8192x8192", _operand(8192, 8192), bench=True, dtypes=("float32", "float16", "bfloat16")),
    ),
    dtypes=("float32", "float16", "bfloat16", "float64", "int8", "int32", "int64", "uint8"),
    cost=lambda x, out: Cost(x.numel() * x.element_size() + out.numel() * out.element_size(), flops=x.numel()),
    sweep=Sweep(powers_of_2(10, 26), lambda d, n: _operand(1, n)(d), "elements of one row"),
    blocks=Blocks(BLOCK_N=1024, BLOCK_S=64, num_warps=4),
    space={"BLOCK_N": (256, 512, 1024, 2048, 4096), "BLOCK_S": (64, 256, 1024), "num_warps": (2, 4, 8)},
)
