"""Microscaling: `dot_scaled` by format (OCP Microscaling Formats 1.0)."""

from functools import partial

import torch
import triton
import triton.language as tl

from portability.kernels.api._probe import empty, load_block, probe, store_block

GROUP = 32  # elements along the inner dimension that share one scale
ROWS, COLUMNS, DEPTH = 128, 32, 64  # of a product: the smallest that Blackwell's tensor memory takes


@triton.jit
def scaled_kernel(
    x_ptr, x_scale_ptr, y_ptr, y_scale_ptr, out_ptr, X_FORMAT: tl.constexpr, Y_FORMAT: tl.constexpr,
    X_PACKED: tl.constexpr, Y_PACKED: tl.constexpr, FAST: tl.constexpr, ACCUMULATE: tl.constexpr,
    M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """out = (x · 2^x_scale)·(y · 2^y_scale), with PACKED elements along K in one byte."""
    x, y = load_block(x_ptr, M, K // X_PACKED), load_block(y_ptr, K // Y_PACKED, N)
    x_scale = None if x_scale_ptr is None else load_block(x_scale_ptr, M, K // GROUP)
    y_scale = None if y_scale_ptr is None else load_block(y_scale_ptr, N, K // GROUP)
    acc = tl.full((M, N), 1, tl.float32) if ACCUMULATE else None
    out = tl.dot_scaled(x, x_scale, X_FORMAT, y, y_scale, Y_FORMAT, acc=acc, fast_math=FAST)
    store_block(out_ptr, out)


@triton.jit
def rows_packed_kernel(
    x_ptr, x_scale_ptr, y_ptr, y_scale_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr,
    GROUP: tl.constexpr,
):  # fmt: skip
    """out = (x · 2^x_scale)·(y · 2^y_scale), with two rows of x and two columns of y in one byte."""
    x, y = load_block(x_ptr, M // 2, K), load_block(y_ptr, K, N // 2)
    x_scale, y_scale = load_block(x_scale_ptr, M, K // GROUP), load_block(y_scale_ptr, N, K // GROUP)
    out = tl.dot_scaled(x, x_scale, "e2m1", y, y_scale, "e2m1", lhs_k_pack=False, rhs_k_pack=False)
    store_block(out_ptr, out)


E2M1 = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6], dtype=torch.float64)
STORAGE = {
    "e2m1": torch.uint8,
    "e4m3": torch.float8_e4m3fn,
    "e5m2": torch.float8_e5m2,
    "bf16": torch.bfloat16,
    "fp16": torch.float16,
}


def elements(draw, rows, columns, form):
    return draw.integers(rows, columns, low=0, high=256, dtype=torch.uint8) if form == "e2m1" else draw.normal(
        rows, columns, dtype=STORAGE[form]
    )  # fmt: skip


def scales(draw, rows, form):
    """Exponents of 2, biased by 127; the formats of 16 bits have none."""
    if form in ("bf16", "fp16"):
        return None
    return draw.integers(rows, DEPTH // GROUP, low=124, high=131, dtype=torch.uint8)


def unpacked(x, axis):
    """Two elements of a byte, the lower bits first, along `axis`."""
    if x.dtype is not torch.uint8:
        return x.to(torch.float64)
    pair = torch.stack([E2M1[(x & 15).long()], E2M1[(x >> 4).long()]], axis + 1)
    return pair.flatten(axis, axis + 1)


def scaled(x, scale):
    """x · 2^(scale - 127), a scale for each GROUP of elements of a row."""
    return x if scale is None else x * torch.exp2(scale.to(torch.float64) - 127).repeat_interleave(GROUP, 1)


def scaled_product(x, x_scale, y, y_scale, x_axis=1, y_axis=0, acc=0.0):
    left = scaled(unpacked(x, x_axis), x_scale)
    right = scaled(unpacked(y, y_axis).t(), y_scale).t()
    return acc + left @ right


def scaled_terms(x, x_scale, y, y_scale, x_axis=1, y_axis=0, acc=0.0):
    left = scaled(unpacked(x, x_axis), x_scale).abs()
    right = scaled(unpacked(y, y_axis).t(), y_scale).t().abs()
    return acc + left @ right


def scaled_probe(x_form, y_form, name="", fast=False, accumulate=False):
    """The probe of a scaled product of two formats; its dtype is what stores the first."""
    x_packed, y_packed = (2 if form == "e2m1" else 1 for form in (x_form, y_form))

    def inputs(d):
        x, y = elements(d, ROWS, DEPTH // x_packed, x_form), elements(d, DEPTH // y_packed, COLUMNS, y_form)
        return x, scales(d, ROWS, x_form), y, scales(d, COLUMNS, y_form)

    acc = 1.0 if accumulate else 0.0
    return probe(
        "tl.dot_scaled", scaled_kernel, partial(scaled_product, acc=acc),
        name=name or f"tl.dot_scaled.{x_form}.{y_form}",
        inputs=inputs, terms=partial(scaled_terms, acc=acc), out=empty(ROWS, COLUMNS, dtype=torch.float32),
        dtypes=(str(STORAGE[x_form]).removeprefix("torch."),), group="linear_algebra", X_FORMAT=x_form,
        Y_FORMAT=y_form, X_PACKED=x_packed, Y_PACKED=y_packed, FAST=fast, ACCUMULATE=accumulate, M=ROWS, N=COLUMNS,
        K=DEPTH, GROUP=GROUP,
    )  # fmt: skip


def rows_packed(d):
    x, y = elements(d, ROWS // 2, DEPTH, "e2m1"), elements(d, DEPTH, COLUMNS // 2, "e2m1")
    return x, scales(d, ROWS, "e2m1"), y, scales(d, COLUMNS, "e2m1")


FORMATS = (
    ("e2m1", "e2m1"), ("e4m3", "e4m3"), ("e5m2", "e5m2"), ("e4m3", "e2m1"), ("e2m1", "e4m3"), ("e5m2", "e4m3"),
    ("bf16", "e2m1"), ("fp16", "e2m1"), ("bf16", "e4m3"), ("e4m3", "bf16"),
)  # fmt: skip

CASES = [
    *(scaled_probe(x_form, y_form) for x_form, y_form in FORMATS),
    scaled_probe("e4m3", "e4m3", "tl.dot_scaled.accumulate", accumulate=True),
    scaled_probe("bf16", "e4m3", "tl.dot_scaled.fast_math", fast=True),
    probe(
        "tl.dot_scaled", rows_packed_kernel, partial(scaled_product, x_axis=0, y_axis=1), name="tl.dot_scaled.k_pack",
        inputs=rows_packed, terms=partial(scaled_terms, x_axis=0, y_axis=1),
        out=empty(ROWS, COLUMNS, dtype=torch.float32),
        dtypes=("uint8",), group="linear_algebra", M=ROWS, N=COLUMNS, K=DEPTH, GROUP=GROUP,
    ),
]  # fmt: skip
