"""Values of the narrow floating-point formats in numpy, which has none of them.

bfloat16 and the five float8 formats of Triton travel as unsigned bits. Arithmetic widens them to float32,
computes, and narrows the result once, to nearest even, as every GPU's converting instructions do. A float8 result
beyond the format's largest finite value is that value (`cvt.satfinite` of PTX); targets differ there, so that
`saturated` says where it happened.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

Bits = NDArray[Any]
Floats = NDArray[Any]

QUIET = np.uint32(0x40)  # the bit that keeps a NaN a NaN when its low half is cut off


@dataclass(frozen=True)
class Float8:
    """One float8 format. `ieee` keeps the top exponent for infinities and NaN, `fnuz` has one NaN and one zero."""

    mantissa: int  # bits
    bias: int
    ieee: bool = False
    fnuz: bool = False
    nan: int | None = None  # the code of NaN, for the sign 0


FLOAT8 = {
    "fp8e4nv": Float8(mantissa=3, bias=7, nan=0x7F),  # OCP E4M3
    "fp8e5": Float8(mantissa=2, bias=15, ieee=True, nan=0x7E),  # OCP E5M2
    "fp8e4b8": Float8(mantissa=3, bias=8, fnuz=True, nan=0x80),
    "fp8e5b16": Float8(mantissa=2, bias=16, fnuz=True, nan=0x80),
    "fp8e4b15": Float8(mantissa=3, bias=15),  # Triton's own: every code is a number, up to 1.875
}
NARROW = frozenset({"bf16", *FLOAT8})
HELD = {  # what numpy holds a Triton type in
    "int1": np.bool_, "int8": np.int8, "int16": np.int16, "int32": np.int32, "int64": np.int64,
    "uint8": np.uint8, "uint16": np.uint16, "uint32": np.uint32, "uint64": np.uint64,
    "fp16": np.float16, "fp32": np.float32, "fp64": np.float64, "bf16": np.uint16, **dict.fromkeys(FLOAT8, np.uint8),
}  # fmt: skip


def numpy_dtype(dtype: Any) -> np.dtype[Any]:
    """Return the numpy dtype that holds elements of a Triton type: bits for the narrow floats, uint64 for pointers."""
    scalar = dtype.scalar
    return np.dtype(np.uint64 if scalar.is_ptr() else HELD[scalar.name])


@cache
def _decoded(name: str) -> Floats:
    """Return the float32 value of each of the 256 codes."""
    form = FLOAT8[name]
    code = np.arange(256)
    fraction = code & ((1 << form.mantissa) - 1)
    exponent = (code & 0x7F) >> form.mantissa
    subnormal = exponent == 0
    significand = np.where(subnormal, 0, 1) + fraction / (1 << form.mantissa)
    value = np.ldexp(significand, np.where(subnormal, 1, exponent) - form.bias)
    value = np.where(code & 0x80, -value, value)
    if form.ieee:
        top = exponent == 0x7F >> form.mantissa
        value[top] = np.where(fraction[top] == 0, np.copysign(np.inf, value[top]), np.nan)
    elif form.fnuz:
        value[0x80] = np.nan
    elif form.nan is not None:
        value[[form.nan, form.nan | 0x80]] = np.nan
    table: Floats = value.astype(np.float32)
    table.flags.writeable = False
    return table


@cache
def _ladder(name: str) -> tuple[Floats, Floats]:
    """Return the finite values that are not negative, by code, and the midpoints between them; all exact in float64."""
    values = _decoded(name)[:128].astype(np.float64)
    values = values[np.isfinite(values)]
    return values, (values[1:] + values[:-1]) / 2


def largest(name: str) -> float:
    """Return the largest finite value of a float8 format."""
    return float(_ladder(name)[0][-1])


def widen(bits: Bits, name: str) -> Floats:
    """Return float32 values of `bits` (uint16 of "bf16", uint8 of the float8 formats); exact."""
    if name == "bf16":
        return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)
    return np.asarray(_decoded(name)[bits])


def narrow(values: Floats, name: str, toward_zero: bool = False) -> Bits:
    """Return the bits of float32 or float64 `values` in the format `name`, rounded to nearest even or toward zero."""
    return _bfloat16(values, toward_zero) if name == "bf16" else _float8(values, name, toward_zero)


def saturated(values: Floats, name: str) -> NDArray[np.bool_]:
    """Return where a value is past the range of a float8 format, so that targets may give infinity or NaN instead."""
    ladder = _ladder(name)[0]
    tie = ladder[-1] + (ladder[-1] - ladder[-2]) / 2
    even = len(ladder) % 2 == 1  # a tie goes to the even code: is that the largest one?
    return np.asarray(np.abs(values) > tie if even else np.abs(values) >= tie)


def _bfloat16(values: Floats, toward_zero: bool) -> Bits:
    exact = np.ascontiguousarray(values, dtype=np.float32)  # GPUs go from float64 through float32 too
    word = exact.view(np.uint32)
    rounded = word if toward_zero else word + (np.uint32(0x7FFF) + ((word >> np.uint32(16)) & np.uint32(1)))
    half = (rounded >> np.uint32(16)).astype(np.uint16)
    nan = np.isnan(exact)
    if nan.any():
        half[nan] = ((word[nan] >> np.uint32(16)) | QUIET).astype(np.uint16)
    return half.reshape(np.shape(values))


def _float8(values: Floats, name: str, toward_zero: bool) -> Bits:
    form, (ladder, middles) = FLOAT8[name], _ladder(name)
    size = np.abs(values).astype(np.float64)
    if toward_zero:
        code = np.searchsorted(ladder, size, side="right") - 1
    else:
        code = np.searchsorted(middles, size, side="left")  # the codes below, and at a midpoint the lower one
        tie = middles[np.minimum(code, len(middles) - 1)] == size
        code += tie & (code & 1).astype(bool)
    nan = np.isnan(size)
    code = np.minimum(np.where(nan, 0, code), len(ladder) - 1)
    negative = np.signbit(values)
    if form.fnuz:
        negative &= code != 0  # no negative zero: its code is NaN
    code = np.where(negative, code | 0x80, code)
    if nan.any():
        code = np.where(nan, len(ladder) - 1 if form.nan is None else form.nan, code)
    return code.astype(np.uint8)


def float16_toward_zero(values: Floats) -> Floats:
    """Return `values` as float16, rounded toward zero: an overflow gives the largest finite value."""
    near = values.astype(np.float16)
    past = np.abs(near.astype(np.float64)) > np.abs(values.astype(np.float64))
    return np.where(past & ~np.isinf(values), np.nextafter(near, np.float16(0)), near)
