"""Which lanes of an operation are such that targets, or Python and a GPU, do not agree on the result.

Each function returns a boolean array of the lanes, or None where none can be; all are exact.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Lanes = NDArray[np.bool_] | None


def some(lanes: Any) -> Lanes:
    """Return the lanes if there are any."""
    return lanes if np.any(lanes) else None


def added(a: Array, b: Array, total: Array) -> Lanes:
    """Where a + b wraps round: both have one sign and the sum has the other."""
    return some(((a ^ total) & (b ^ total)) < 0)


def subtracted(a: Array, b: Array, difference: Array) -> Lanes:
    """Where a - b wraps round."""
    return some(((a ^ b) & (a ^ difference)) < 0)


def multiplied(a: Array, b: Array, product: Array) -> Lanes:
    """Where a·b wraps round."""
    if product.dtype.itemsize < 8:
        return some(np.multiply(a, b, dtype=np.int64) != product)
    if not np.any(np.abs(a.astype(np.float64)) * np.abs(b.astype(np.float64)) >= 2.0**62):
        return None
    a, b = np.broadcast_arrays(a, b)
    inverse = np.where(a == 0, 0, product // np.where(a == 0, 1, a))  # undoes a product that fits
    return some((a != 0) & ((inverse * a != product) | (inverse != b)))


def rounds_apart(a: Array, b: Array) -> Lanes:
    """Where a / b rounded toward zero, as every target does, is not rounded down, as Python does: mixed signs."""
    if a.dtype.kind == "u" or not np.any((a < 0) != (b < 0)):
        return None
    a, b = np.broadcast_arrays(a, b)
    divisor = np.where(b == 0, 1, b)
    return some(((a < 0) != (b < 0)) & (b != 0) & (np.fmod(a, divisor) != 0))


def by_zero(b: Array) -> Lanes:
    """Where an integer is divided by 0."""
    return some(b == 0)


def past_width(amount: Array, bits: int) -> Lanes:
    """Where a shift's amount is not within the width."""
    return some((amount < 0) | (amount >= bits))


def out_of_range(values: Array, kind: np.dtype[Any]) -> Lanes:
    """Where a float has no integer of the type `kind` beside it: too large, infinite or NaN."""
    info = np.iinfo(kind)
    inside = (np.trunc(values) >= float(info.min)) & (
        np.trunc(values) < float(info.max) + (1 if info.bits <= 32 else 0)
    )
    return some(~inside)


def nan(*operands: Array) -> Lanes:
    """Where an operand is NaN."""
    found: Any = False
    for values in operands:
        if values.dtype.kind == "f":
            found = found | np.isnan(values)
    return some(found)
