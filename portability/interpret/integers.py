"""Integer arithmetic, and the warnings about what Python, constants and targets do differently."""

# ruff: noqa: D102 - these methods have the names, arguments and meaning of Triton's builder

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from portability.interpret import checks
from portability.interpret.elementwise import Elementwise, numbers
from portability.interpret.internals import TensorHandle
from portability.interpret.undefined import spread

Handle = Any  # a TensorHandle
Array = NDArray[Any]

SIGNED = ("int8", "int16", "int32", "int64")  # unsigned ones wrap round where that is meant


class Integers(Elementwise):
    """Wrapping arithmetic, division toward zero, shifts and addresses."""

    def _wrapping(self, lhs: Handle, rhs: Handle, op: np.ufunc, check: Callable[..., checks.Lanes]) -> Handle:
        out = self.binary_op(lhs, rhs, op)
        if out.dtype.name in SIGNED:
            lanes = check(lhs.data, rhs.data, out.data)
            if lanes is not None:
                message = f"{out.dtype.name} {op.__name__} wraps round, at {_example(lanes, lhs, rhs)}"
                self.warn("int-overflow", lanes, message, lhs, rhs)
        return out

    def create_add(self, lhs: Handle, rhs: Handle) -> Handle:
        return self._wrapping(lhs, rhs, np.add, checks.added)

    def create_sub(self, lhs: Handle, rhs: Handle) -> Handle:
        return self._wrapping(lhs, rhs, np.subtract, checks.subtracted)

    def create_mul(self, lhs: Handle, rhs: Handle) -> Handle:
        return self._wrapping(lhs, rhs, np.multiply, checks.multiplied)

    def create_idiv(self, lhs: Handle, rhs: Handle) -> Handle:
        """Toward zero; a division by 0 gives 0 here."""
        self._division("division", lhs, rhs)
        divisor = np.where(rhs.data == 0, 1, rhs.data).astype(rhs.data.dtype)
        values = np.where(rhs.data == 0, 0, (lhs.data - np.fmod(lhs.data, divisor)) // divisor)
        return spread(TensorHandle(values.astype(lhs.data.dtype), lhs.dtype.scalar), lhs, rhs)

    create_sdiv = create_idiv
    create_udiv = create_idiv

    def create_srem(self, lhs: Handle, rhs: Handle) -> Handle:
        self._division("remainder", lhs, rhs)
        return self.binary_op(lhs, rhs, np.fmod)

    create_urem = create_srem

    def create_frem(self, lhs: Handle, rhs: Handle) -> Handle:
        self._signs("remainder", lhs, rhs)
        return self.binary_op(lhs, rhs, np.fmod)

    def _division(self, what: str, lhs: Handle, rhs: Handle) -> None:
        zero = checks.by_zero(rhs.data)
        if zero is not None:
            lanes = np.broadcast_to(zero, np.broadcast_shapes(lhs.data.shape, rhs.data.shape))
            self.warn("div-by-zero", lanes, f"integer {what} by 0, which targets answer differently", lhs, rhs)
        self._signs(what, lhs, rhs)

    def _signs(self, what: str, lhs: Handle, rhs: Handle) -> None:
        lanes = checks.rounds_apart(numbers(lhs), numbers(rhs))
        if lanes is not None:
            example = _example(lanes, lhs, rhs)
            message = f"{what} of mixed signs, {example}: toward zero here and on GPUs, down in Python and constants"
            self.warn("mixed-signs", lanes, message, lhs, rhs)

    def _shift_checked(self, lhs: Handle, rhs: Handle) -> None:
        bits = lhs.data.dtype.itemsize * 8
        lanes = checks.past_width(rhs.data, bits)
        if lanes is not None:
            amount = int(np.broadcast_to(rhs.data, lanes.shape)[lanes][0])
            self.warn(
                "shift-width", lanes, f"a shift of {bits} bits by {amount}, which targets answer differently", rhs
            )

    def create_shl(self, lhs: Handle, rhs: Handle) -> Handle:
        self._shift_checked(lhs, rhs)
        return self.binary_op(lhs, rhs, np.left_shift)

    def create_lshr(self, lhs: Handle, rhs: Handle) -> Handle:
        """Zeros come in at the top, whatever the sign."""
        return self._shifted_right(lhs, rhs, "u")

    def create_ashr(self, lhs: Handle, rhs: Handle) -> Handle:
        """Copies of the sign come in at the top."""
        return self._shifted_right(lhs, rhs, "i")

    def _shifted_right(self, lhs: Handle, rhs: Handle, sign: str) -> Handle:
        self._shift_checked(lhs, rhs)
        held = lhs.data.dtype
        kind = held if held == np.bool_ else np.dtype(f"{sign}{held.itemsize}")
        values = np.right_shift(lhs.data.view(kind), rhs.data.astype(kind)).view(held)
        return spread(TensorHandle(values, lhs.dtype.scalar), lhs, rhs)

    def create_umulhi(self, lhs: Handle, rhs: Handle) -> Handle:
        """The high half of the product of the bit patterns taken as unsigned numbers."""
        kind = lhs.data.dtype
        unsigned = np.dtype(f"u{kind.itemsize}")
        values = high_half(lhs.data.astype(unsigned), rhs.data.astype(unsigned)).view(kind)
        return spread(TensorHandle(values, lhs.dtype.scalar), lhs, rhs)

    def create_addptr(self, ptr: Handle, offset: Handle) -> Handle:
        """Addresses `offset` elements on; those of one bit lie a byte apart."""
        width = max(1, ptr.get_element_ty().primitive_bitwidth // 8)
        values = ptr.data + np.uint64(width) * offset.data.astype(np.uint64)
        return spread(TensorHandle(values, ptr.dtype), ptr, offset)


def _example(lanes: Array, lhs: Handle, rhs: Handle) -> str:
    """The operands of the first such lane, for a message."""
    a, b = (np.broadcast_to(numbers(h), lanes.shape)[lanes][0].item() for h in (lhs, rhs))
    return f"{a} and {b}"


def high_half(a: Array, b: Array) -> Array:
    """Return the high half of a·b for unsigned arrays of one dtype."""
    bits = a.dtype.itemsize * 8
    if bits < 64:
        return np.asarray(((a.astype(np.uint64) * b.astype(np.uint64)) >> np.uint64(bits)).astype(a.dtype))
    low, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    ah, al, bh, bl = a >> half, a & low, b >> half, b & low
    middle = ah * bl + ((al * bl) >> half)  # below 2^64: (2^32 - 1)^2 + 2^32 - 1
    return np.asarray(ah * bh + (middle >> half) + ((al * bh + (middle & low)) >> half))
