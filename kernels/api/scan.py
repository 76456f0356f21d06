"""Scans, sorts, histograms and gathers."""

from functools import partial

import torch
import triton
import triton.language as tl

from portability.kernels.api._probe import BLOCK, NUMBERS, ROWS, called, empty, magnitude, powers, running, wholes

rows = partial(called, group="scan", rows=ROWS, relative=0.0)
ordered = partial(
    called, group="scan", relative=0.0, size=16
)  # every doubling of a sort's size adds to its compile time
flat = partial(called, group="scan", relative=0.0)

K = 8
BINS = 16


@triton.jit
def cumsum(x):
    return tl.cumsum(x, axis=1)


@triton.jit
def cumsum_reverse(x):
    return tl.cumsum(x, axis=1, reverse=True)


@triton.jit
def cumsum_first_axis(x):
    return tl.cumsum(x)


@triton.jit
def cumsum_in_float32(x):
    return tl.cumsum(x, axis=1, dtype=tl.float32)


@triton.jit
def cumprod(x):
    return tl.cumprod(x, axis=1)


@triton.jit
def larger(a, b):
    return tl.maximum(a, b)


@triton.jit
def scan_maximum(x):
    return tl.associative_scan(x, 1, larger)


@triton.jit
def scan_maximum_reverse(x):
    return tl.associative_scan(x, 1, larger, reverse=True)


@triton.jit
def recurrence(decay_a, value_a, decay_b, value_b):
    """Join two steps of h ← decay · h + value."""
    return decay_a * decay_b, decay_b * value_a + value_b


@triton.jit
def scan_tuple(x):
    half = x - x + 0.5
    _, value = tl.associative_scan((half, x), 1, recurrence)
    return value


@triton.jit
def sort(x):
    return tl.sort(x)


@triton.jit
def sort_descending(x):
    return tl.sort(x, descending=True)


@triton.jit
def topk(x):
    return tl.topk(x, 8)


@triton.jit
def bitonic_merge(x):
    """Sort what rises and then falls: the larger half is reversed."""
    halves = tl.reshape(tl.sort(x), (2, x.shape[0] // 2))
    rising = tl.arange(0, 2)[:, None] == 0
    return tl.bitonic_merge(tl.reshape(tl.where(rising, halves, tl.flip(halves, 1)), (x.shape[0],)))


@triton.jit
def flip(x):
    return tl.flip(x, 1)


@triton.jit
def flip_default(x):
    return tl.flip(x)


@triton.jit
def flip_rows(x):
    return tl.flip(x, 0)


@triton.jit
def histogram(x):
    return tl.histogram(x, 16)


@triton.jit
def histogram_mask(x):
    return tl.histogram(x, 16, mask=x < 8)


@triton.jit
def gather(x, index):
    return tl.gather(x, index.to(tl.int32), axis=1)


def shuffled(draw):
    """Rows, and for each place of theirs a column to take from."""
    return draw.normal(ROWS, BLOCK), draw.integers(ROWS, BLOCK, low=0, high=BLOCK, dtype=torch.int32)


def reverse(reference):
    return lambda x: reference(x.flip(1)).flip(1)


def counted(x, most=BINS):
    return torch.bincount(x[x < most].long(), minlength=BINS)


def cumulative(x):
    return x.cumsum(1).to(x.dtype)


def bins(draw):
    return (draw.integers(BLOCK, low=0, high=BINS),)


decaying = running(lambda total, x: total * 0.5 + x)

CASES = [
    rows("tl.cumsum", cumsum, cumulative, inputs=wholes(ROWS), dtypes=NUMBERS),
    rows(
        "tl.cumsum", cumsum_reverse, reverse(cumulative), name="tl.cumsum.reverse", inputs=wholes(ROWS),
        dtypes=("float32", "int32"),
    ),
    rows(
        "tl.cumsum", cumsum_first_axis, lambda x: x.cumsum(0), name="tl.cumsum.axis0", inputs=wholes(ROWS),
        dtypes=("float32",),
    ),
    rows(
        "tl.cumsum", cumsum_in_float32, lambda x: x.cumsum(1), name="tl.cumsum.dtype",
        out=empty(ROWS, BLOCK, dtype=torch.float32), inputs=wholes(ROWS), dtypes=("float16", "bfloat16"),
    ),
    rows(
        "tl.cumsum", cumsum, cumulative, name="tl.cumsum.rounded", terms=lambda x: magnitude(x).cumsum(1),
        dtypes=("float32", "float64"),
    ),
    rows(
        "tl.cumprod", cumprod, lambda x: x.cumprod(1).to(x.dtype), inputs=powers(ROWS),
        dtypes=("float32", "float16", "bfloat16", "float64", "int32"),
    ),
    rows(
        "tl.associative_scan", scan_maximum, lambda x: x.cummax(1).values,
        dtypes=("float32", "bfloat16", "float64", "int32"),
    ),
    rows(
        "tl.associative_scan", scan_maximum_reverse, reverse(lambda x: x.cummax(1).values),
        name="tl.associative_scan.reverse", dtypes=("float32", "int32"),
    ),
    rows(
        "tl.associative_scan", scan_tuple, decaying, name="tl.associative_scan.tuple",
        terms=lambda x: decaying(magnitude(x)), dtypes=("float32", "float64"),
    ),
    ordered("tl.sort", sort, lambda x: x.sort().values, dtypes=("float32", "float16", "bfloat16", "int32", "int64")),
    ordered(
        "tl.sort", sort_descending, lambda x: x.sort(descending=True).values, name="tl.sort.descending",
        dtypes=("float32",),
    ),
    ordered("tl.sort", sort, lambda x: x.sort(1).values, name="tl.sort.2d", rows=2, dtypes=("float32",)),
    ordered("tl.topk", topk, lambda x: x.topk(K).values, out=empty(K), dtypes=("float32", "float16", "int32")),
    ordered("tl.bitonic_merge", bitonic_merge, lambda x: x.sort().values, dtypes=("float32", "int32")),
    rows("tl.flip", flip, lambda x: x.flip(1), dtypes=("float32", "float16", "int32", "int8", "bool")),
    rows("tl.flip", flip_default, lambda x: x.flip(1), name="tl.flip.default", dtypes=("float32",)),
    rows("tl.flip", flip_rows, lambda x: x.flip(0), name="tl.flip.dim0", dtypes=("float32", "int32")),
    flat(
        "tl.histogram", histogram, counted, inputs=bins, out=empty(BINS, dtype=torch.int32),
        dtypes=("int32", "int64", "uint8"),
    ),
    flat(
        "tl.histogram", histogram_mask, partial(counted, most=8), name="tl.histogram.mask", inputs=bins,
        out=empty(BINS, dtype=torch.int32), dtypes=("int32",),
    ),
    rows(
        "tl.gather", gather, lambda x, index: x.gather(1, index.long()), arity=2, inputs=shuffled,
        dtypes=("float32", "float16", "float64", "int32", "int8"),
    ),
]  # fmt: skip
