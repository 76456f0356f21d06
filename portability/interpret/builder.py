"""The operations of `triton.language` on numpy arrays, with right values: Triton's own builder where that is right.

Triton's interpreter computes bfloat16 and float8 on their raw bits, rounds wrongly when it narrows, and lets every
address through. Each method here has the name and the arguments that Triton's front end calls.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import triton.language as tl
from numpy.typing import NDArray

from portability.interpret.access import Access
from portability.interpret.internals import InterpreterBuilder, InterpreterOptions, TensorHandle, ir, native
from portability.interpret.libdevice import compute
from portability.interpret.report import Report, Unsupported
from portability.interpret.undefined import spread
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

PRECISIONS = ("tf32", "tf32x3", "ieee", "bf16x3", "bf16x6")
BITWISE = (np.bitwise_and, np.bitwise_or, np.bitwise_xor)


def numbers(handle: Handle) -> Array:
    """Return the values of a handle in a type that numpy can compute in."""
    name = handle.dtype.scalar.name
    return widen(handle.data, name) if name in NARROW else handle.data


class CheckedBuilder(InterpreterBuilder):  # type: ignore[misc]
    """Triton's interpreter builder with right narrow formats, checked accesses and computed library calls.

    `grid_dim` and `grid_idx` are set by the executor; `access` owns memory.
    """

    def __init__(self, report: Report, access: Access) -> None:
        super().__init__()
        self.options = dataclasses.replace(InterpreterOptions(), allowed_dot_input_precisions=PRECISIONS)
        self.codegen_fns["convert_custom_types"] = self._convert_custom_types
        self.report = report
        self.access = access

    # ------------------------------------------------------------------------------------------------ values

    def encode(self, values: Array, dtype: Any, toward_zero: bool = False) -> Handle:
        """Return a handle of float `values` rounded to the float type `dtype`."""
        name = dtype.scalar.name
        if name in FLOAT8:
            self._saturation(values, name)
        if name in NARROW:
            return TensorHandle(narrow(values, name, toward_zero), dtype.scalar)
        if toward_zero and name == "fp16":
            return TensorHandle(float16_toward_zero(values), dtype.scalar)
        return TensorHandle(values.astype(HELD[name]), dtype.scalar)

    def _saturation(self, values: Array, name: str) -> None:
        past = saturated(values, name)
        if past.any():
            worst = float(np.abs(values[past]).max())
            self.report.warn(
                "fp8-saturation", f"{worst:g} is past the range of {name}: saturated here, NaN or infinity elsewhere"
            )

    def get_bf16(self, value: float) -> Handle:
        return self.encode(np.array([value], dtype=np.float32), tl.bfloat16)

    def get_null_value(self, type: Any) -> Handle:
        return TensorHandle(np.zeros(1, dtype=numpy_dtype(type)), type.scalar)

    # ------------------------------------------------------------------------------------------------- casts

    def _convert_custom_types(self, input: Any, dst_ty: Any, fp_downcast_rounding: Any, _semantic: Any) -> Any:
        return tl.tensor(self.create_fp_to_fp(input.handle, dst_ty, fp_downcast_rounding), dst_ty)

    def cast_impl(self, src: Handle, dst_type: Any) -> Handle:
        target = dst_type.scalar
        if target.is_floating():
            values = numbers(src)
            if target.name in NARROW and values.dtype.kind != "f":
                values = values.astype(np.float64)
            return self.encode(values, target)
        return TensorHandle(numbers(src).astype(numpy_dtype(target)), target)

    def create_fp_to_fp(self, src: Handle, dst_type: Any, rounding_mode: Any) -> Handle:
        return self.encode(numbers(src), dst_type, toward_zero=rounding_mode == ir.ROUNDING_MODE.RTZ)

    def create_fp_to_si(self, src: Handle, dst_type: Any) -> Handle:
        """Toward zero; out of range gives the nearest integer and NaN gives 0, as CUDA does."""
        values, kind = numbers(src), numpy_dtype(dst_type)
        info = np.iinfo(kind)
        if values.size and info.min <= values.min() and values.max() < float(info.max):
            return TensorHandle(values.astype(kind), dst_type.scalar)
        wide = np.nan_to_num(values.astype(np.float64), nan=0.0, posinf=np.inf, neginf=-np.inf)
        inside = (np.trunc(wide) >= info.min) & (np.trunc(wide) < float(info.max) + 1)
        edge = np.where(wide < 0, info.min, info.max).astype(kind)
        data = np.where(inside & (wide < float(info.max) + 1), np.where(inside, wide, 0).astype(kind), edge)
        return TensorHandle(data, dst_type.scalar)

    create_fp_to_ui = create_fp_to_si

    # -------------------------------------------------------------------------------------------- elementwise

    def binary_op(self, lhs: Handle, rhs: Handle, op: Callable[[Array, Array], Array]) -> Handle:
        dtype = lhs.dtype.scalar
        if dtype.name in NARROW and op not in BITWISE:
            values = op(widen(lhs.data, dtype.name), widen(rhs.data, dtype.name))
            out = TensorHandle(values, tl.int1) if values.dtype == np.bool_ else self.encode(values, dtype)
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
            return self.encode(op(numbers(arg)), arg.dtype)
        return TensorHandle(op(arg.data), arg.dtype.scalar)

    def ternary_op(self, lhs: Handle, rhs: Handle, other: Handle, op: Callable[..., Array]) -> Handle:
        dtype = other.dtype.scalar
        if dtype.name in NARROW and op is not np.where:
            return self.encode(op(numbers(lhs), numbers(rhs), numbers(other)), dtype)
        values = op(lhs.data, rhs.data, other.data)
        return TensorHandle(values.astype(numpy_dtype(dtype), copy=False), dtype)

    def create_minnumf(self, lhs: Handle, rhs: Handle) -> Handle:
        return self.binary_op(lhs, rhs, np.fmin)

    def create_maxnumf(self, lhs: Handle, rhs: Handle) -> Handle:
        return self.binary_op(lhs, rhs, np.fmax)

    def create_clampf(self, arg: Handle, lo: Handle, hi: Handle, propagate_nans: Any) -> Handle:
        if propagate_nans == ir.PROPAGATE_NAN.NONE:
            return self.binary_op(self.binary_op(arg, lo, np.fmax), hi, np.fmin)
        return self.ternary_op(arg, lo, hi, np.clip)

    def create_fma(self, x: Handle, y: Handle, z: Handle) -> Handle:
        """x·y + z, rounded once."""
        a, b, c = np.broadcast_arrays(numbers(x), numbers(y), numbers(z))
        exact = getattr(
            native, {np.dtype(np.float32): "fma_fp32", np.dtype(np.float64): "fma_fp64"}.get(a.dtype, ""), None
        )
        if exact is not None and z.dtype.scalar.name not in NARROW:
            return TensorHandle(exact(a, b, c), z.dtype.scalar)
        wide = np.longdouble if a.dtype == np.float64 else np.float64  # twice the mantissa for all but float64
        values = a.astype(wide) * b.astype(wide) + c.astype(wide)
        return self.encode(values.astype(np.float64), z.dtype)

    def create_fneg(self, arg: Handle) -> Handle:
        return self.unary_op(arg, np.negative)

    def create_fabs(self, arg: Handle) -> Handle:
        return self.unary_op(arg, np.abs)

    def create_erf(self, arg: Handle) -> Handle:
        return self.unary_op(arg, _erf)

    def create_rsqrt(self, arg: Handle) -> Handle:
        return self.unary_op(arg, _rsqrt)

    def create_approx_divf(self, lhs: Handle, rhs: Handle) -> Handle:
        return self.binary_op(lhs, rhs, np.divide)

    def create_lshr(self, lhs: Handle, rhs: Handle) -> Handle:
        """A logical shift: zeros come in at the top, whatever the sign."""
        unsigned = np.dtype(f"u{lhs.data.dtype.str[1:]}") if lhs.data.dtype.kind == "i" else lhs.data.dtype
        values = np.right_shift(lhs.data.view(unsigned), rhs.data.astype(unsigned))
        return TensorHandle(values.view(lhs.data.dtype), lhs.dtype.scalar)

    def create_ashr(self, lhs: Handle, rhs: Handle) -> Handle:
        signed = np.dtype(lhs.data.dtype.str.replace("u", "i"))
        values = np.right_shift(lhs.data.view(signed), rhs.data.astype(signed))
        return TensorHandle(values.view(lhs.data.dtype), lhs.dtype.scalar)

    def create_umulhi(self, lhs: Handle, rhs: Handle) -> Handle:
        """The high half of the product of the bit patterns taken as unsigned numbers."""
        kind = lhs.data.dtype
        unsigned = np.dtype(f"u{kind.itemsize}")
        values = high_half(lhs.data.astype(unsigned), rhs.data.astype(unsigned))
        return TensorHandle(values.view(kind), lhs.dtype.scalar)

    # -------------------------------------------------------------------------------------------------- dots

    def create_dot(self, a: Handle, b: Handle, d: Handle, input_precision: Any, max_num_imprecise_acc: int) -> Handle:
        """a·b + d, accumulated in float32 (float64 and int32 for their own), rounded once to d's type."""
        kind = d.data.dtype if d.data.dtype.kind != "f" or d.data.dtype == np.float64 else np.dtype(np.float32)
        product = np.matmul(numbers(a).astype(kind), numbers(b).astype(kind))
        return TensorHandle((product + d.data).astype(d.data.dtype), d.dtype.scalar)

    def create_dot_scaled(
        self, lhs: Handle, lhs_scale: Handle | None, lhs_format: Any, rhs: Handle, rhs_scale: Handle | None,
        rhs_format: Any, fast_math: bool, lhs_k_pack: bool, rhs_k_pack: bool, acc: Handle,
    ) -> Handle:  # fmt: skip
        """(lhs·2^scale)·(rhs·2^scale) + acc in float32: OCP Microscaling Formats 1.0. Scales go along K, by groups."""
        left = _scaled(lhs, lhs_scale, lhs_format, -1 if lhs_k_pack else -2)
        right = np.swapaxes(
            _scaled_columns(rhs, rhs_scale, rhs_format, -2 if rhs_k_pack else -1), -1, -2
        )  # fmt: skip
        return TensorHandle((np.matmul(left, right) + acc.data).astype(np.float32), tl.float32)

    # ------------------------------------------------------------------------------------------- rearranging

    def create_splat(self, ret_ty: Any, arg: Handle) -> Handle:
        return TensorHandle(np.full(ret_ty.shape, arg.data.reshape(-1)[0], dtype=arg.data.dtype), arg.dtype.scalar)

    def create_unsplat(self, arg: Handle) -> Handle:
        return TensorHandle(arg.data.reshape(-1)[:1].copy(), arg.dtype.scalar)

    def create_bitcast(self, src: Handle, dst_type: Any) -> Handle:
        return TensorHandle(src.data.view(numpy_dtype(dst_type)), dst_type.scalar)

    create_int_to_ptr = create_bitcast
    create_ptr_to_int = create_bitcast

    def create_histogram(self, data: Handle, bins: int, mask: Handle | None) -> Handle:
        """Counts of the values 0 to bins - 1 as int32; other values and masked lanes are counted nowhere."""
        counted = (data.data >= 0) & (data.data < bins)
        if mask is not None:
            counted &= mask.data
        return TensorHandle(np.bincount(data.data[counted].astype(np.int64), minlength=bins).astype(np.int32), tl.int32)

    def get_all_ones_value(self, type: Any) -> Handle:
        kind = numpy_dtype(type)
        ones = np.ones(1, dtype=kind) if kind == np.bool_ else np.full(1, -1, dtype=np.int64).astype(kind)
        return TensorHandle(ones, type.scalar)

    # ------------------------------------------------------------------------------------------------ memory

    def create_load(self, ptr: Handle, *policy: Any) -> Handle:
        return self.access.load(ptr, None, None)

    def create_masked_load(self, ptrs: Handle, mask: Any, other: Handle | None, *policy: Any, **named: Any) -> Handle:
        return self.access.load(ptrs, getattr(mask, "data", mask) if isinstance(mask, TensorHandle) else mask, other)

    def create_store(self, ptr: Handle, val: Handle, *policy: Any) -> None:
        self.access.store(ptr, val, None)

    def create_masked_store(self, ptrs: Handle, value: Handle, mask: Any, *policy: Any, **named: Any) -> None:
        self.access.store(ptrs, value, mask.data if isinstance(mask, TensorHandle) else mask)

    def create_atomic_rmw(self, rmwOp: Any, ptr: Handle, val: Handle, mask: Handle, sem: Any, scope: Any) -> Handle:
        return self.access.atomic(rmwOp.name, ptr, val, mask.data)

    def create_atomic_cas(self, ptr: Handle, cmp: Handle, val: Handle, sem: Any, scope: Any) -> Handle:
        return self.access.compare_and_swap(ptr, cmp, val)

    def create_atomic_load(self, ptr: Handle, mask: Handle, sem: Any, scope: Any) -> Handle:
        return self.access.load(ptr, mask.data, None, atomic=True)

    def create_atomic_store(self, ptr: Handle, val: Handle, mask: Handle, sem: Any, scope: Any) -> None:
        self.access.store(ptr, val, mask.data, atomic=True)

    def create_descriptor_reduce(self, kind: Any, desc: Any, value: Handle, indices: list[Handle]) -> None:
        pointers, mask = desc.materialize_pointers(indices)
        name = "FADD" if kind.name == "ADD" and value.dtype.scalar.is_floating() else kind.name
        self.access.atomic(name, pointers, value, mask.data if isinstance(mask, TensorHandle) else mask)

    # ----------------------------------------------------------------------------------- what is not computed

    def create_extern_elementwise(
        self, libName: str, libPath: str, symbol: str, argList: list[Handle], retType: Any, isPure: bool
    ) -> Handle:
        """A call of a vendor's device library."""
        values = compute(symbol, [numbers(a) for a in argList])
        return TensorHandle(values.astype(numpy_dtype(retType)), retType.scalar)

    def create_inline_asm(self, inlineAsm: str, *rest: Any) -> Handle:
        raise Unsupported(f"inline assembly is not interpreted: {' '.join(inlineAsm.split())[:80]!r}")

    def create_barrier(self) -> None:
        """One program runs at a time, in lock step: there is nothing to wait for."""

    create_grid_dependency_wait = create_barrier
    create_grid_dependency_launch_dependents = create_barrier


def _erf(values: Array) -> Array:
    return torch.special.erf(torch.from_numpy(values.astype(np.float64))).numpy().astype(values.dtype)  # type: ignore[no-any-return]


def _rsqrt(values: Array) -> Array:
    return (1 / np.sqrt(values.astype(np.float64))).astype(values.dtype)


def high_half(a: Array, b: Array) -> Array:
    """Return the high half of a·b for unsigned arrays of one dtype."""
    bits = a.dtype.itemsize * 8
    if bits < 64:
        return ((a.astype(np.uint64) * b.astype(np.uint64)) >> np.uint64(bits)).astype(a.dtype)
    low, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    ah, al, bh, bl = a >> half, a & low, b >> half, b & low
    middle = ah * bl + ((al * bl) >> half)  # at most 2^64 - 2^33 + 1: cannot wrap
    carry = al * bh + (middle & low)
    return ah * bh + (middle >> half) + (carry >> half)


def _scaled(value: Handle, scale: Handle | None, form: Any, axis: int) -> Array:
    """Return float32 values of a scaled operand laid out [.., rows, K]; `axis` is the one that packs two E2M1."""
    values = _unpacked(value.data, axis) if form.name == "E2M1" else numbers(value).astype(np.float32)
    if scale is None:
        return values
    factor = _scale_factors(scale)
    return values * np.repeat(factor, values.shape[-1] // factor.shape[-1], axis=-1)


def _scaled_columns(value: Handle, scale: Handle | None, form: Any, axis: int) -> Array:
    """As `_scaled`, for an operand laid out [.., K, columns]; returned as [.., columns, K]."""
    values = _unpacked(value.data, axis) if form.name == "E2M1" else numbers(value).astype(np.float32)
    values = np.swapaxes(values, -1, -2)
    if scale is None:
        return values
    factor = _scale_factors(scale)
    return values * np.repeat(factor, values.shape[-1] // factor.shape[-1], axis=-1)


def _scale_factors(scale: Handle) -> Array:
    """Return float32 factors: E8M0 bytes are exponents with bias 127 (255 is NaN), float8 scales are their values."""
    if scale.dtype.scalar.name in NARROW:
        return numbers(scale)
    exponent = scale.data.view(np.uint8).astype(np.int32)
    return np.where(exponent == 255, np.float32(np.nan), np.ldexp(np.float32(1), exponent - 127)).astype(np.float32)


E2M1 = np.array([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0], dtype=np.float32)


def _unpacked(data: Array, axis: int) -> Array:
    """Return float32 of two E2M1 values a byte along `axis`, the low half first."""
    bytes_ = np.moveaxis(data.view(np.uint8), axis, -1)
    codes = np.stack((bytes_ & 0xF, bytes_ >> 4), axis=-1).reshape(*bytes_.shape[:-1], -1)
    values = np.where(codes & 8, -E2M1[codes & 7], E2M1[codes & 7])
    return np.moveaxis(values, -1, axis)
