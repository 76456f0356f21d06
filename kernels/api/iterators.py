"""Loops: `tl.range` with its options, `tl.static_range`, `tl.condition`, Python's own."""

from functools import partial

import torch
import triton
import triton.language as tl

from portability.kernels.api._probe import BLOCK, ROWS, empty, magnitude, normals, probe

loop = partial(
    probe, reference=lambda x: x.sum(0), group="iterators", inputs=normals(1, ROWS), out=empty(BLOCK),
    terms=lambda x: magnitude(x).sum(0), dtypes=("float32",), BLOCK=BLOCK,
)  # fmt: skip


@triton.jit
def static_range_kernel(x_ptr, out_ptr, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """out = Σ of the rows of x, the loop unrolled."""
    column = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for row in tl.static_range(ROWS):
        total += tl.load(x_ptr + row * BLOCK + column)
    tl.store(out_ptr + column, total)


@triton.jit
def static_range_step_kernel(x_ptr, out_ptr, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """The same, from the last row to the first."""
    column = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for row in tl.static_range(ROWS - 1, -1, -1):
        total += tl.load(x_ptr + row * BLOCK + column)
    tl.store(out_ptr + column, total)


@triton.jit
def python_range_kernel(x_ptr, out_ptr, rows, BLOCK: tl.constexpr):
    """The same, in Python's own range over a number that is known only when it runs."""
    column = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for row in range(rows):
        total += tl.load(x_ptr + row * BLOCK + column)
    tl.store(out_ptr + column, total)


@triton.jit
def range_kernel(x_ptr, out_ptr, rows, BLOCK: tl.constexpr):
    """The same, in the language's range."""
    column = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for row in tl.range(rows):
        total += tl.load(x_ptr + row * BLOCK + column)
    tl.store(out_ptr + column, total)


@triton.jit
def range_step_kernel(x_ptr, out_ptr, rows, BLOCK: tl.constexpr):
    """The same, the even rows before the odd ones."""
    column = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for first in tl.static_range(2):
        for row in tl.range(first, rows, 2):
            total += tl.load(x_ptr + row * BLOCK + column)
    tl.store(out_ptr + column, total)


@triton.jit
def range_backward_kernel(x_ptr, out_ptr, rows, BLOCK: tl.constexpr):
    """The same, from the last row to the first."""
    column = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for row in tl.range(rows - 1, -1, -1):
        total += tl.load(x_ptr + row * BLOCK + column)
    tl.store(out_ptr + column, total)


@triton.jit
def range_option_kernel(x_ptr, out_ptr, rows, OPTION: tl.constexpr, BLOCK: tl.constexpr):
    """The same, with one option of the range."""
    column = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    if OPTION == "num_stages":
        for row in tl.range(0, rows, num_stages=3):
            total += tl.load(x_ptr + row * BLOCK + column)
    elif OPTION == "loop_unroll_factor":
        for row in tl.range(0, rows, loop_unroll_factor=2):
            total += tl.load(x_ptr + row * BLOCK + column)
    elif OPTION == "flatten":
        for row in tl.range(0, rows, flatten=True):
            total += tl.load(x_ptr + row * BLOCK + column)
    else:
        for row in tl.range(0, rows, disable_licm=True):
            total += tl.load(x_ptr + row * BLOCK + column)
    tl.store(out_ptr + column, total)


@triton.jit
def range_product_kernel(x_ptr, out_ptr, SPECIALIZE: tl.constexpr, MULTI: tl.constexpr, TILE: tl.constexpr):
    """out = Σ of four products x·x, with an option of the range that is about products."""
    offsets = tl.arange(0, TILE)[:, None] * TILE + tl.arange(0, TILE)[None, :]
    total = tl.zeros((TILE, TILE), tl.float32)
    for _ in tl.range(0, 4, warp_specialize=SPECIALIZE, disallow_acc_multi_buffer=MULTI):
        x = tl.load(x_ptr + offsets)
        total = tl.dot(x, x, total)
    tl.store(out_ptr + offsets, total)


@triton.jit
def while_kernel(x_ptr, out_ptr, rows, BLOCK: tl.constexpr):
    """The same sum, while there are rows."""
    column = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    row = 0
    while row < rows:
        total += tl.load(x_ptr + row * BLOCK + column)
        row += 1
    tl.store(out_ptr + column, total)


@triton.jit
def condition_kernel(x_ptr, out_ptr, rows, BLOCK: tl.constexpr):
    """The same, with an option of the condition."""
    column = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    row = 0
    while tl.condition(row < rows, disable_licm=True):
        total += tl.load(x_ptr + row * BLOCK + column)
        row += 1
    tl.store(out_ptr + column, total)


@triton.jit
def branch_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    """out = x where a value that was loaded says so, else -x."""
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    sign = 1.0 if tl.load(x_ptr) > 0 else -1.0
    tl.store(out_ptr + offsets, x * sign)


OPTIONS = ("num_stages", "loop_unroll_factor", "flatten", "disable_licm")
TILE = 64


CASES = [
    loop("tl.static_range", static_range_kernel, ROWS=ROWS),
    loop("tl.static_range", static_range_step_kernel, name="tl.static_range.step", ROWS=ROWS),
    loop("tl.range", range_kernel, rows=ROWS),
    loop("tl.range", range_step_kernel, name="tl.range.step", rows=ROWS),
    loop("tl.range", range_backward_kernel, name="tl.range.backward", rows=ROWS),
    *(
        loop("tl.range", range_option_kernel, name=f"tl.range.{option}", rows=ROWS, OPTION=option) for option in OPTIONS
    ),
    *(
        probe(
            "tl.range", range_product_kernel, lambda x: 4 * (x @ x), name=f"tl.range.{option}", group="iterators",
            inputs=lambda d: (d.normal(TILE, TILE),), out=empty(TILE, TILE, dtype=torch.float32),
            terms=lambda x: 4 * (x.abs() @ x.abs()), dtypes=("float16",), TILE=TILE,
            SPECIALIZE=option == "warp_specialize", MULTI=option == "disallow_acc_multi_buffer",
        )
        for option in ("warp_specialize", "disallow_acc_multi_buffer")
    ),
    loop("range", python_range_kernel, rows=ROWS),
    loop("while", while_kernel, rows=ROWS),
    loop("tl.condition", condition_kernel, rows=ROWS),
    probe(
        "if", branch_kernel, lambda x: x if x[0] > 0 else -x, group="iterators", relative=0.0, dtypes=("float32",),
        BLOCK=BLOCK,
    ),
]  # fmt: skip
