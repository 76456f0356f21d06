"""Reductions along an axis: every dtype, and a ragged tail filled with the identity of the operation."""

from functools import partial

import torch
import triton
import triton.language as tl

from portability.kernels.api._probe import (
    BLOCK,
    NUMBERS,
    ROWS,
    bound,
    called,
    empty,
    folded,
    magnitude,
    powers,
    probe,
    wholes,
)

rows = partial(called, group="reduction", rows=ROWS, relative=0.0, out=empty(ROWS))
summed = partial(rows, inputs=wholes(ROWS))
ragged = partial(probe, group="reduction", relative=0.0, out=empty(ROWS), BLOCK=BLOCK)
INDEX = empty(ROWS, dtype=torch.int32)
RAGGED = BLOCK - 7


@triton.jit
def sum_rows(x):
    return tl.sum(x, axis=1)


@triton.jit
def sum_columns(x):
    return tl.sum(x, axis=0)


@triton.jit
def sum_all(x):
    return tl.sum(x)


@triton.jit
def sum_keeping(x):
    return tl.sum(x, axis=1, keep_dims=True)


@triton.jit
def sum_in_float32(x):
    return tl.sum(x, axis=1, dtype=tl.float32)


@triton.jit
def max_rows(x):
    return tl.max(x, axis=1)


@triton.jit
def min_rows(x):
    return tl.min(x, axis=1)


@triton.jit
def max_with_index(x):
    value, index = tl.max(x, axis=1, return_indices=True)
    return value + index


@triton.jit
def min_with_index(x):
    value, index = tl.min(x, axis=1, return_indices=True)
    return value + index


@triton.jit
def argmax(x):
    return tl.argmax(x, axis=1)


@triton.jit
def argmin(x):
    return tl.argmin(x, axis=1)


@triton.jit
def argmax_right(x):
    return tl.argmax(x, axis=1, tie_break_left=False)


@triton.jit
def argmin_right(x):
    return tl.argmin(x, axis=1, tie_break_left=False)


@triton.jit
def xor_sum(x):
    return tl.xor_sum(x, axis=1)


@triton.jit
def reduce_or(x):
    return tl.reduce_or(x, axis=1)


@triton.jit
def multiply(a, b):
    return a * b


@triton.jit
def reduce_product(x):
    return tl.reduce(x, 1, multiply)


@triton.jit
def welford(mean_a, square_a, count_a, mean_b, square_b, count_b):
    """Join two sets of values, each given by mean, sum of squared deviations and count (Chan, Golub and LeVeque)."""
    count = count_a + count_b
    delta = mean_b - mean_a
    return mean_a + delta * count_b / count, square_a + square_b + delta * delta * count_a * count_b / count, count


@triton.jit
def reduce_tuple(x):
    zero = x - x
    _, square, count = tl.reduce((x, zero, zero + 1), 1, welford)
    return square / count


FN = None  # the reduction in question, which `bound` puts here


@triton.jit
def ragged_kernel(x_ptr, out_ptr, n: tl.constexpr, IDENTITY: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """out = FN(x) along rows of n elements, which are fewer than the block's."""
    row, column = tl.arange(0, ROWS), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row[:, None] * n + column[None, :], mask=column[None, :] < n, other=IDENTITY)
    tl.store(out_ptr + row, FN(x))


def short(draw):
    """Rows of whole numbers that do not fill a block."""
    return (draw.integers(ROWS, RAGGED, low=-3, high=4),)


def below_zero(draw):
    """Short rows in which a zero would be the largest."""
    return (draw.uniform(ROWS, RAGGED, low=-4.0, high=-1.0),)


def above_zero(draw):
    """Short rows in which a zero would be the smallest."""
    return (draw.uniform(ROWS, RAGGED, low=1.0, high=4.0),)


def distinct(draw):
    """Rows without ties."""
    order = torch.stack([torch.randperm(BLOCK, generator=torch.Generator().manual_seed(row)) for row in range(ROWS)])
    return ((order - BLOCK // 2).to(draw.dtype) if draw.dtype.is_signed else order.to(draw.dtype),)


def product(x):
    return x.prod(1).to(x.dtype)


def with_index(x, largest):
    value, index = x.max(1) if largest else x.min(1)
    return (value + index).to(x.dtype)


def tail(identity, function, reference, name, **more):
    """The probe of a reduction over rows that do not fill the block, whose tail is the operation's identity."""
    return ragged(
        f"tl.{name}", bound(ragged_kernel, function), reference, name=f"tl.{name}.ragged",
        **{"inputs": short, "n": RAGGED, "IDENTITY": identity, "ROWS": ROWS, **more},
    )  # fmt: skip


CASES = [
    summed("tl.sum", sum_rows, lambda x: x.sum(1).to(x.dtype), dtypes=(*NUMBERS, "int16", "uint32", "uint64")),
    summed(
        "tl.sum", sum_keeping, lambda x: x.sum(1, keepdim=True), name="tl.sum.keep_dims", out=empty(ROWS, 1),
        dtypes=("float32",),
    ),
    summed(
        "tl.sum", sum_in_float32, lambda x: x.sum(1), name="tl.sum.dtype", out=empty(ROWS, dtype=torch.float32),
        dtypes=("float16", "bfloat16"),
    ),
    summed("tl.sum", sum_columns, lambda x: x.sum(0), name="tl.sum.axis0", out=empty(BLOCK), dtypes=("float32",)),
    summed("tl.sum", sum_all, torch.sum, name="tl.sum.all", out=empty(), dtypes=("float32",)),
    rows(
        "tl.sum", sum_rows, lambda x: x.sum(1), name="tl.sum.rounded", terms=lambda x: magnitude(x).sum(1),
        dtypes=("float32", "float64"),
    ),
    rows("tl.max", max_rows, lambda x: x.amax(1), dtypes=NUMBERS),
    rows("tl.min", min_rows, lambda x: x.amin(1), dtypes=NUMBERS),
    rows(
        "tl.max", max_with_index, partial(with_index, largest=True), name="tl.max.return_indices", inputs=distinct,
        dtypes=("float32", "int32"),
    ),
    rows(
        "tl.min", min_with_index, partial(with_index, largest=False), name="tl.min.return_indices", inputs=distinct,
        dtypes=("float32", "int32"),
    ),
    rows(
        "tl.argmax", argmax, lambda x: x.argmax(1), out=INDEX,
        dtypes=("float32", "float16", "bfloat16", "int32", "int8"),
    ),
    rows(
        "tl.argmin", argmin, lambda x: x.argmin(1), out=INDEX,
        dtypes=("float32", "float16", "bfloat16", "int32", "int8"),
    ),
    rows(
        "tl.argmax", argmax_right, lambda x: x.argmax(1), name="tl.argmax.tie_break_fast", out=INDEX, inputs=distinct,
        dtypes=("float32", "int32"),
    ),
    rows(
        "tl.argmin", argmin_right, lambda x: x.argmin(1), name="tl.argmin.tie_break_fast", out=INDEX, inputs=distinct,
        dtypes=("float32", "int32"),
    ),
    rows("tl.xor_sum", xor_sum, folded(torch.bitwise_xor), dtypes=("int32", "int8", "int64")),
    rows("tl.reduce_or", reduce_or, folded(torch.bitwise_or), dtypes=("int32", "int8", "int64")),
    rows(
        "tl.reduce", reduce_product, product, inputs=powers(ROWS),
        dtypes=("float32", "float16", "bfloat16", "float64", "int32"),
    ),
    rows(
        "tl.reduce", reduce_tuple, lambda x: x.var(1, unbiased=False), name="tl.reduce.tuple", relative=4.0,
        dtypes=("float32", "float64"),
    ),
    tail(0, sum_rows, lambda x: x.sum(1).to(x.dtype), "sum", dtypes=("float32", "float16", "float64", "int32")),
    tail(1, reduce_product, product, "reduce", inputs=powers(ROWS, RAGGED), dtypes=("float32", "float64", "int32")),
    tail(
        float("-inf"), max_rows, lambda x: x.amax(1), "max", inputs=below_zero,
        dtypes=("float32", "float16", "float64"),
    ),
    tail(
        float("inf"), min_rows, lambda x: x.amin(1), "min", inputs=above_zero, dtypes=("float32", "float16", "float64"),
    ),
    tail(0, xor_sum, folded(torch.bitwise_xor), "xor_sum", dtypes=("int32",)),
    tail(0, reduce_or, folded(torch.bitwise_or), "reduce_or", dtypes=("int32",)),
    tail(float("-inf"), argmax, lambda x: x.argmax(1), "argmax", inputs=below_zero, out=INDEX, dtypes=("float32",)),
    tail(float("inf"), argmin, lambda x: x.argmin(1), "argmin", inputs=above_zero, out=INDEX, dtypes=("float32",)),
]  # fmt: skip
