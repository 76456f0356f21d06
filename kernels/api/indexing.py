"""Choosing and ordering: where, expect_zero, swizzles, and blocks indexed with None."""

from functools import partial

import torch
import triton
import triton.language as tl

from portability.kernels.api._probe import BLOCK, NUMBERS, ROWS, called, empty, normals, probe

spelled = partial(called, group="indexing", relative=0.0)


@triton.jit
def where(x, y):
    return tl.where(x < y, x, y + y)


@triton.jit
def where_scalar(x):
    return tl.where(x > 0, x, 0)


@triton.jit
def expect_zero(x):
    keep = x > 0
    return tl.expect_zero(tl.where(keep, x, 0), keep)


@triton.jit
def new_axis(x):
    return x[None, :, None]


@triton.jit
def swizzle2d_kernel(x_ptr, out_ptr, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """Every place of x is moved to where the swizzle of groups of 2 rows puts it."""
    row, column = tl.arange(0, ROWS)[:, None], tl.arange(0, BLOCK)[None, :]
    new_row, new_column = tl.swizzle2d(row, column, ROWS, BLOCK, 2)
    tl.store(out_ptr + new_row * BLOCK + new_column, tl.load(x_ptr + row * BLOCK + column))


def swizzled(x):
    """Two rows at a time, column by column."""
    return torch.cat([pair.flatten().reshape(-1, 2).t() for pair in x.split(2)])


CASES = [
    spelled("tl.where", where, lambda x, y: torch.where(x < y, x, y + y), arity=2, dtypes=NUMBERS),
    spelled(
        "tl.where", where_scalar, lambda x: x.clamp(min=0), name="tl.where.scalar",
        dtypes=("float32", "float16", "int8"),
    ),
    spelled("tl.expect_zero", expect_zero, lambda x: x.clamp(min=0), dtypes=("float32", "float16", "int32")),
    spelled(
        "tensor.__getitem__", new_axis, lambda x: x[None, :, None], out=empty(1, BLOCK, 1), dtypes=("float32", "int8"),
    ),
    probe(
        "tl.swizzle2d", swizzle2d_kernel, swizzled, group="indexing", inputs=normals(1, ROWS), relative=0.0,
        dtypes=("float32",), ROWS=ROWS, BLOCK=BLOCK,
    ),
]  # fmt: skip
