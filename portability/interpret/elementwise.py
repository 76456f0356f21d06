"""Operations from lanes to lanes, with right narrow formats."""

# ruff: noqa: D102 - these methods have the names, arguments and meaning of Triton's builder

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import triton.language as tl
from numpy.typing import NDArray

from portability.interpret import checks
from portability.interpret.internals import InterpreterBuilder, TensorHandle, ir, native
from portability.interpret.report import Report
from portability.interpret.undefined import KEY, Undefined, lanes_of, spread
from portability.interpret.values import (
    FLOAT8,
    HELD,
    NARROW,
    float16_toward_zero,
    narrow,
    numpy_dtype,
    saturated,
    widen,
)

Handle = Any  # a TensorHandle
Array = NDArray[Any]

BITWISE = (np.bitwise_and, np.bitwise_or, np.bitwise_xor)


def numbers(handle: Handle) -> Array:
    """Return the values of a handle in a type that numpy can compute in."""
    name = handle.dtype.scalar.name
    return widen(handle.data, name) if name in NARROW else handle.data


class Elementwise(InterpreterBuilder):  # type: ignore[misc]
    """The general forms, which everything else is made of, and floating-point arithmetic."""

    report: Report
    passes_nan = False  # whether minima and maxima that do not say so pass NaN on, as some targets have it

    def warn(self, code: str, lanes: checks.Lanes, message: str, *operands: Handle) -> None:
        """Warn about `lanes`, leaving out those that are undefined in an operand: they are thrown away, or a fault."""
        if lanes is None:
            return
        undefined = lanes_of(*operands)
        if undefined is not None and not np.any(lanes & ~undefined):
            return
        self.report.warn(code, message)

    def encode(self, values: Array, dtype: Any, toward_zero: bool = False, *sources: Handle) -> Handle:
        """Return a handle of float `values`, computed from `sources`, rounded to the float type `dtype`."""
        name = dtype.scalar.name
        if name in FLOAT8:
            past = checks.some(saturated(values, name))
            if past is not None:
                worst = float(np.abs(values[past]).max())
                message = f"{worst:g} is past the range of {name}: saturated here, NaN or infinity on other targets"
                self.warn("fp8-saturation", past, message, *sources)
        if name in NARROW:
            out = TensorHandle(narrow(values, name, toward_zero), dtype.scalar)
        elif toward_zero and name == "fp16":
            out = TensorHandle(float16_toward_zero(values), dtype.scalar)
        else:
            out = TensorHandle(values.astype(HELD[name], copy=False), dtype.scalar)
        return spread(out, *sources)

    # ------------------------------------------------------------------------------------- the general forms

    def binary_op(self, lhs: Handle, rhs: Handle, op: Callable[[Array, Array], Array]) -> Handle:
        dtype = lhs.dtype.scalar
        if dtype.name in NARROW and op not in BITWISE:
            values = op(widen(lhs.data, dtype.name), widen(rhs.data, dtype.name))
            if values.dtype != np.bool_:
                return self.encode(values, dtype, False, lhs, rhs)
            out = TensorHandle(values, tl.int1)
        elif dtype.name == "int1":  # one bit that wraps round, where numpy's bool saturates and refuses to subtract
            values = op(lhs.data.astype(np.int8), rhs.data.astype(np.int8))
            out = TensorHandle((values & 1).astype(np.bool_), dtype)
        else:
            values = op(lhs.data, rhs.data)
            if values.dtype == np.bool_:
                dtype = tl.int1
            out = TensorHandle(values.astype(numpy_dtype(dtype), copy=False), dtype)
        return spread(out, lhs, rhs) if lhs.attr or rhs.attr else out

    def unary_op(self, arg: Handle, op: Callable[[Array], Array]) -> Handle:
        if arg.dtype.scalar.name in NARROW:
            return self.encode(op(numbers(arg)), arg.dtype, False, arg)
        return spread(TensorHandle(op(arg.data), arg.dtype.scalar), arg)

    def ternary_op(self, lhs: Handle, rhs: Handle, other: Handle, op: Callable[..., Array]) -> Handle:
        dtype = other.dtype.scalar
        if dtype.name in NARROW:
            return self.encode(op(numbers(lhs), numbers(rhs), numbers(other)), dtype, False, lhs, rhs, other)
        values = op(lhs.data, rhs.data, other.data)
        return spread(TensorHandle(values.astype(numpy_dtype(dtype), copy=False), dtype), lhs, rhs, other)

    def create_select(self, cond: Handle, lhs: Handle, rhs: Handle) -> Handle:
        """Lanes of one or the other; a lane is undefined where the one that is taken is, or the condition."""
        values = np.where(cond.data, lhs.data, rhs.data).astype(rhs.data.dtype, copy=False)
        out = TensorHandle(values, rhs.dtype.scalar)
        if cond.attr or lhs.attr or rhs.attr:
            sides = [h.attr[KEY].lanes if KEY in h.attr else np.zeros((), dtype=bool) for h in (cond, lhs, rhs)]
            lanes = np.broadcast_to(sides[0] | np.where(cond.data, sides[1], sides[2]), out.data.shape)
            if lanes.any():
                place = next(h.attr[KEY].place for h in (cond, lhs, rhs) if KEY in h.attr)
                out.attr[KEY] = Undefined(lanes, place)
        return out

    # ------------------------------------------------------------------------------------------------ floats

    def _extreme(self, lhs: Handle, rhs: Handle, op: np.ufunc) -> Handle:
        lanes = checks.nan(numbers(lhs), numbers(rhs))
        if lanes is not None:
            self.warn("nan-minmax", lanes, f"NaN in {op.__name__}, which targets drop or pass on", lhs, rhs)
        return self.binary_op(lhs, rhs, PASSING[op] if self.passes_nan else op)

    def create_minnumf(self, lhs: Handle, rhs: Handle) -> Handle:
        return self._extreme(lhs, rhs, np.fmin)

    def create_maxnumf(self, lhs: Handle, rhs: Handle) -> Handle:
        return self._extreme(lhs, rhs, np.fmax)

    def create_clampf(self, arg: Handle, lo: Handle, hi: Handle, propagate_nans: Any) -> Handle:
        if propagate_nans == ir.PROPAGATE_NAN.NONE:
            return self._extreme(self._extreme(arg, lo, np.fmax), hi, np.fmin)
        return self.ternary_op(arg, lo, hi, np.clip)

    def create_fma(self, x: Handle, y: Handle, z: Handle) -> Handle:
        """x·y + z, rounded once."""
        a, b, c = np.broadcast_arrays(numbers(x), numbers(y), numbers(z))
        exact = getattr(native, {4: "fma_fp32", 8: "fma_fp64"}.get(a.dtype.itemsize, ""), None)
        if exact is not None:
            return self.encode(exact(a, b, c), z.dtype, False, x, y, z)
        wide = np.longdouble if a.dtype == np.float64 else np.float64  # holds the product of two float32 exactly
        values = a.astype(wide) * b.astype(wide) + c.astype(wide)
        return self.encode(values.astype(np.float64), z.dtype, False, x, y, z)

    def create_fneg(self, arg: Handle) -> Handle:
        return self.unary_op(arg, np.negative)

    def create_fabs(self, arg: Handle) -> Handle:
        return self.unary_op(arg, np.abs)

    def create_erf(self, arg: Handle) -> Handle:
        return self.unary_op(arg, _erf)

    def create_rsqrt(self, arg: Handle) -> Handle:
        return self.unary_op(arg, _rsqrt)


PASSING: dict[np.ufunc, np.ufunc] = {np.fmin: np.minimum, np.fmax: np.maximum}  # the same, where a NaN is the result


def _erf(values: Array) -> Array:
    wide = torch.from_numpy(values.astype(np.float64))
    return np.asarray(torch.special.erf(wide).numpy().astype(values.dtype))


def _rsqrt(values: Array) -> Array:
    return np.asarray((1 / np.sqrt(values.astype(np.float64))).astype(values.dtype))
