"""The functions of device libraries on integers and on the bits of floats."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from portability.interpret.integers import high_half

Array = NDArray[Any]


def _unsigned(x: Array) -> Array:
    return x.view(f"u{x.dtype.itemsize}")


def _leading_zeros(x: Array) -> Array:
    bits = x.dtype.itemsize * 8
    word, count = _unsigned(x).copy(), np.zeros(x.shape, dtype=np.int32)
    for step in (32, 16, 8, 4, 2, 1):
        if step < bits:
            short = word < np.array(1, dtype=word.dtype) << np.array(bits - step, dtype=word.dtype)
            count[short] += step
            word[short] <<= np.array(step, dtype=word.dtype)
    return np.where(x == 0, bits, count).astype(np.int32)


def _first_set(x: Array) -> Array:
    """The position of the lowest bit that is set, from 1; 0 for 0."""
    bits = x.dtype.itemsize * 8
    lowest = _unsigned(x) & (~_unsigned(x) + np.array(1, dtype=_unsigned(x).dtype))
    return np.where(x == 0, 0, bits - _leading_zeros(lowest)).astype(np.int32)


def _reversed(x: Array) -> Array:
    each = np.unpackbits(np.ascontiguousarray(_unsigned(x)).reshape(-1, 1).view(np.uint8), axis=1, bitorder="little")
    back = np.packbits(each[:, ::-1], axis=1, bitorder="little")
    return np.ascontiguousarray(back).view(x.dtype).reshape(x.shape)


def _byte_perm(x: Array, y: Array, selector: Array) -> Array:
    """Four bytes chosen from the eight of y and x by the low three bits of each nibble of the selector."""
    both = (_unsigned(y).astype(np.uint64) << np.uint64(32)) | _unsigned(x).astype(np.uint64)
    out = np.zeros(np.broadcast_shapes(both.shape, selector.shape), dtype=np.uint32)
    for i in range(4):
        index = (_unsigned(selector) >> np.uint32(4 * i)) & np.uint32(7)
        byte = (both >> (index.astype(np.uint64) * np.uint64(8))) & np.uint64(0xFF)
        out |= byte.astype(np.uint32) << np.uint32(8 * i)
    return out.view(np.int32)


def _signed_high(a: Array, b: Array) -> Array:
    """The high half of a signed product: the unsigned one, less b where a is negative and a where b is."""
    high = high_half(_unsigned(a), _unsigned(b)).view(a.dtype)
    return high - np.where(a < 0, b, 0) - np.where(b < 0, a, 0)


def _low24(x: Array) -> Array:
    """The low 24 bits, with the sign of the highest of them for a signed type."""
    if x.dtype.kind == "u":
        return x & np.uint32(0xFFFFFF)
    return (x << np.int32(8)) >> np.int32(8)


def _average(x: Array, y: Array, up: int) -> Array:
    return ((x.astype(np.int64) + y.astype(np.int64) + up) >> 1).astype(x.dtype)


def _distance(x: Array, y: Array, more: Array) -> Array:
    """|x - y| + more, modulo 2^32."""
    return (np.abs(x.astype(np.int64) - y.astype(np.int64)) + more.astype(np.int64)).astype(np.uint32).view(x.dtype)


def _double(high: Array, low: Array) -> Array:
    return ((_unsigned(high).astype(np.uint64) << np.uint64(32)) | _unsigned(low).astype(np.uint64)).view(np.float64)


def _high_word(x: Array) -> Array:
    return (x.view(np.uint64) >> np.uint64(32)).astype(np.uint32).view(np.int32)


INTEGERS: dict[str, Callable[..., Any]] = {
    "clz": _leading_zeros,
    "popc": lambda x: np.bitwise_count(_unsigned(x)).astype(np.int32),
    "ffs": _first_set,
    "brev": _reversed,
    "byte_perm": _byte_perm,
    "mulhi": _signed_high, "mul64hi": _signed_high, "umulhi": high_half, "umul64hi": high_half,
    "mul24": lambda x, y: _low24(x) * _low24(y), "umul24": lambda x, y: _low24(x) * _low24(y),
    "sad": _distance, "usad": _distance,
    "abs": np.abs, "llabs": np.abs,
    "hadd": lambda x, y: _average(x, y, 0), "uhadd": lambda x, y: _average(x, y, 0),
    "rhadd": lambda x, y: _average(x, y, 1), "urhadd": lambda x, y: _average(x, y, 1),
    "int_as_float": lambda x: x.view(np.float32), "uint_as_float": lambda x: x.view(np.float32),
    "float_as_int": lambda x: x.view(np.int32), "float_as_uint": lambda x: x.view(np.int32),
    "longlong_as_double": lambda x: x.view(np.float64), "double_as_longlong": lambda x: x.view(np.int64),
    "hiloint2double": _double,
    "double2loint": lambda x: x.view(np.uint64).astype(np.uint32).view(np.int32),
    "double2hiint": _high_word,
    "rcp64h": lambda x: _double(_high_word(1 / x), np.zeros(x.shape, dtype=np.int32)),  # 20 bits of the mantissa
    "nextafter": np.nextafter,  # in the type itself
}  # fmt: skip
