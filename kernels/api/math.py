"""Elementwise mathematics.

Tolerances follow what the vendors promise of their instructions: a function that must be rounded correctly is exact,
an approximate one is off by a few units of its result, and those that pass through zero by a few units of 1.
"""

from functools import partial

import torch
import triton
import triton.language as tl

from portability.kernels.api._probe import (
    BLOCK,
    NUMBERS,
    ROWS,
    between,
    called,
    named,
    wide,
)

math = partial(named, group="math")
exact = partial(named, group="math", relative=0.0)
spelled = partial(called, group="math")

POSITIVE = between(0.25, 4.0)
SUMS = ("float32", "float16", "bfloat16", "int32", "uint8")
NANS = ("float32", "float16", "bfloat16")
TWO_POSITIVE = between(0.25, 4.0, 2)
SPREAD = between(-4.0, 4.0)


@triton.jit
def cdiv(x):
    return tl.cdiv(x, 7)


@triton.jit
def clamp(x):
    return tl.clamp(x, -0.5, 0.5)


@triton.jit
def clamp_nan(x):
    return tl.clamp(x, -0.5, 0.5, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def maximum_nan(x, y):
    return tl.maximum(x, y, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def minimum_nan(x, y):
    return tl.minimum(x, y, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def fdiv_ieee(x, y):
    return tl.fdiv(x, y, ieee_rounding=True)


@triton.jit
def fdiv_approx(x, y):
    return tl.fdiv(x, y, approx=True)


@triton.jit
def softmax_dim(x):
    return tl.softmax(x, dim=1)


@triton.jit
def add_wrapping(x, y):
    return tl.add(x, y, sanitize_overflow=False)


@triton.jit
def sub_wrapping(x, y):
    return tl.sub(x, y, sanitize_overflow=False)


@triton.jit
def mul_wrapping(x, y):
    return tl.mul(x, y, sanitize_overflow=False)


@triton.jit
def module_exp(x):
    return tl.math.exp(x)


def high_half(x, y):
    """The upper half of the product of two unsigned integers of a width, also of those that are declared signed."""
    bits = 8 * x.dtype.itemsize
    products = [((a % 2**bits) * (b % 2**bits)) >> bits for a, b in zip(x.tolist(), y.tolist(), strict=True)]
    signed = x.dtype in (torch.int32, torch.int64)
    return torch.tensor([p - 2**bits if signed and p >= 2 ** (bits - 1) else p for p in products], dtype=x.dtype)


def large(draw):
    """Two blocks of integers over the whole range of the dtype."""
    info = torch.iinfo(draw.dtype)
    high = min(info.max, 2**63 - 1)
    return draw.integers(BLOCK, low=info.min, high=high), draw.integers(BLOCK, low=info.min, high=high)


def with_nan(draw):
    """Two blocks with a NaN in the first, in the second, and in both."""
    x, y = draw.normal(BLOCK), draw.normal(BLOCK)
    x[0::4], x[3::8], y[1::4], y[3::8] = (float("nan"),) * 4
    return x, y


def wrapped(operation):
    """`operation` on integers, modulo their range."""
    return lambda x, y: operation(wide(x), wide(y)).to(x.dtype)


CASES = [
    exact("abs", lambda x: x.abs() if x.dtype.is_signed else x, dtypes=(*NUMBERS, "uint32")),
    exact("ceil", torch.ceil),
    exact("floor", torch.floor),
    exact("maximum", torch.maximum, arity=2, dtypes=NUMBERS),
    exact("minimum", torch.minimum, arity=2, dtypes=NUMBERS),
    exact("sqrt_rn", torch.sqrt, inputs=POSITIVE, dtypes=("float32", "float64")),
    exact("div_rn", torch.div, arity=2, inputs=TWO_POSITIVE, dtypes=("float32", "float64")),
    math("exp", torch.exp, inputs=SPREAD, relative=2.0),
    math("exp2", torch.exp2, inputs=SPREAD),
    math("log", torch.log, inputs=POSITIVE, absolute=1.0),
    math("log2", torch.log2, inputs=POSITIVE, absolute=1.0),
    math("sqrt", torch.sqrt, inputs=POSITIVE),
    math("rsqrt", torch.rsqrt, inputs=POSITIVE),
    math("sin", torch.sin, inputs=SPREAD, absolute=1.0),
    math("cos", torch.cos, inputs=SPREAD, absolute=1.0),
    math("erf", torch.erf, inputs=SPREAD),
    math("sigmoid", torch.sigmoid, inputs=SPREAD, relative=2.0),
    math("fdiv", torch.div, arity=2, inputs=TWO_POSITIVE),
    math("fma", lambda x, y, z: x * y + z, arity=3, terms=lambda x, y, z: (x * y).abs() + z.abs()),
    math("add", torch.add, arity=2, dtypes=SUMS, absolute=1.0),
    math("sub", torch.sub, arity=2, dtypes=SUMS, absolute=1.0),
    math("mul", torch.mul, arity=2, dtypes=SUMS),
    math("umulhi", high_half, arity=2, inputs=large, dtypes=("int32", "uint32", "int64", "uint64")),
    math("softmax", lambda x: torch.softmax(x, 0), rows=ROWS, relative=4.0),
    spelled("tl.softmax", softmax_dim, lambda x: torch.softmax(x, 1), name="tl.softmax.dim", rows=ROWS, relative=4.0),
    spelled("tl.math", module_exp, torch.exp, inputs=SPREAD, relative=2.0, dtypes=("float32",)),
    spelled(
        "tl.cdiv", cdiv, lambda x: ((wide(x) + 6) // 7).to(x.dtype), inputs=between(0, 100),
        dtypes=("int32", "int64", "uint32"),
    ),
    spelled("tl.clamp", clamp, lambda x: x.clamp(-0.5, 0.5), relative=0.0),
    spelled(
        "tl.fdiv", fdiv_ieee, torch.div, name="tl.fdiv.ieee_rounding", arity=2, inputs=TWO_POSITIVE, relative=0.0,
        dtypes=("float32", "float64"),
    ),
    spelled(
        "tl.fdiv", fdiv_approx, torch.div, name="tl.fdiv.approx", arity=2, inputs=TWO_POSITIVE, relative=2.0,
        dtypes=("float32",),
    ),
    spelled(
        ("tl.clamp", "tl.PropagateNan"), clamp_nan, lambda x: x.clamp(-0.5, 0.5), name="tl.clamp.propagate_nan",
        inputs=lambda d: with_nan(d)[:1], relative=0.0,
    ),
    spelled(
        ("tl.maximum", "tl.PropagateNan"), maximum_nan, torch.maximum, name="tl.maximum.propagate_nan", arity=2,
        inputs=with_nan, relative=0.0, dtypes=NANS,
    ),
    spelled(
        ("tl.minimum", "tl.PropagateNan"), minimum_nan, torch.minimum, name="tl.minimum.propagate_nan", arity=2,
        inputs=with_nan, relative=0.0, dtypes=NANS,
    ),
    exact("maximum", torch.fmax, name="tl.maximum.ignore_nan", arity=2, inputs=with_nan, dtypes=NANS),
    exact("minimum", torch.fmin, name="tl.minimum.ignore_nan", arity=2, inputs=with_nan, dtypes=NANS),
    *(
        spelled(
            f"tl.{function.__name__.removesuffix('_wrapping')}", function, wrapped(operation), arity=2, inputs=large,
            name=f"tl.{function.__name__.replace('_', '.')}", dtypes=("int32", "uint8"), debug=True,
        )
        for function, operation in ((add_wrapping, torch.add), (sub_wrapping, torch.sub), (mul_wrapping, torch.mul))
    ),
]  # fmt: skip
