"""Arithmetic and conversions in a rounding mode: nearest even (`rn`), toward zero (`rz`), down (`rd`) or up (`ru`).

Exact by rational numbers, element by element; what is rarely called need not be fast.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

EXACT: dict[str, Callable[..., Fraction]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "rcp": lambda a: 1 / a,
    "fma": lambda a, b, c: a * b + c,
}
NEAREST: dict[str, Callable[..., Any]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "rcp": np.reciprocal,
    "fma": lambda a, b, c: a * b + c, "sqrt": np.sqrt,
    "rsqrt": lambda a: (1 / np.sqrt(a.astype(np.float64))).astype(a.dtype),
}  # fmt: skip
TO_INTEGER = {"rn": np.rint, "rz": np.trunc, "rd": np.floor, "ru": np.ceil}
TYPES: dict[str, Any] = {
    "float": np.float32, "double": np.float64, "int": np.int32, "uint": np.uint32, "ll": np.int64, "ull": np.uint64,
}  # fmt: skip


def arithmetic(name: str) -> tuple[str, str] | None:
    """Return operation and mode of a name such as `fadd_rz`, `ddiv_ru`, `fmaf_rn` or `fma_rd`."""
    found = re.fullmatch(r"(?:[fd](add|sub|mul|div|rcp|sqrt|rsqrt)|(fma)f?)_(rn|rz|rd|ru)", name)
    return ((found[1] or found[2]), found[3]) if found else None


def conversion(name: str) -> tuple[str, str, str] | None:
    """Return source, destination and mode of a name such as `float2int_rz`."""
    found = re.fullmatch(r"(float|double|int|uint|ll|ull)2(float|double|int|uint|ll|ull)_(rn|rz|rd|ru)", name)
    return (found[1], found[2], found[3]) if found else None


def computed(operation: str, mode: str, args: list[Array]) -> Array:
    """Return the operation on arrays of one float type, rounded once in the mode."""
    near = np.asarray(NEAREST[operation](*args))
    if mode == "rn" and operation != "fma":
        return near
    return _each(near, args, lambda values, guess: _nudged(operation, mode, values, guess))


def _each(near: Array, args: list[Array], function: Callable[[list[Any], Any], Any]) -> Array:
    lanes = zip(*(np.broadcast_to(a, near.shape).reshape(-1) for a in args), strict=True)
    flat = near.reshape(-1)
    return np.array(
        [function(list(v), g) for v, g in zip(lanes, flat, strict=True)], dtype=near.dtype
    ).reshape(near.shape)  # fmt: skip


def _nudged(operation: str, mode: str, values: list[Any], guess: Any) -> Any:
    """The neighbour of `guess` that the mode asks for."""
    if not all(math.isfinite(v) for v in (*values, guess)):
        return guess
    numbers = [Fraction(float(v)) for v in values]
    if operation in EXACT:
        exact = EXACT[operation](*numbers)
        guess = type(guess)(float(exact))  # at most a neighbour off; a product and a sum rounded apart may be more
        return nearest(exact, guess, mode, lambda x: x - exact)
    if operation == "sqrt":  # x and √a lie as x² and a do
        return nearest(None, guess, mode, lambda x: x * x - numbers[0] if x >= 0 else Fraction(-1))
    return nearest(None, guess, mode, lambda x: x * x * numbers[0] - 1 if x >= 0 else Fraction(-1))  # 1/√a


def nearest(exact: Fraction | None, guess: Any, mode: str, above: Callable[[Fraction], Fraction]) -> Any:
    """Return `guess` or a neighbour of it, as the mode asks; `above(x)` has the sign of x minus the exact value."""
    kind = type(guess)
    near = [np.nextafter(guess, kind(-np.inf)), guess, np.nextafter(guess, kind(np.inf))]
    near = [x for x in near if np.isfinite(x)]
    sign = {float(x): above(Fraction(float(x))) for x in near}
    hits = [x for x in near if sign[float(x)] == 0]
    if hits:
        return hits[0]
    below = [x for x in near if sign[float(x)] < 0]
    over = [x for x in near if sign[float(x)] > 0]
    if mode == "rn":
        assert exact is not None
        apart = [(abs(Fraction(float(x)) - exact), _odd(x), x) for x in near]
        return min(apart, key=lambda item: item[:2])[2]
    if mode == "rz":
        mode = "rd" if guess > 0 else "ru"
    side = below[-1:] if mode == "rd" else over[:1]
    return side[0] if side else kind(-np.inf if mode == "rd" else np.inf)


def _odd(value: Any) -> int:
    return int(np.asarray(value).view(f"u{value.itemsize}")) & 1


def converted(source: str, destination: str, mode: str, values: Array) -> Array:
    """Return `values` in another type. A float out of an integer's range gives the nearest, NaN gives 0."""
    kind = np.dtype(TYPES[destination])
    if kind.kind != "f":
        info = np.iinfo(kind)
        whole = TO_INTEGER[mode](values.astype(np.float64))
        inside = (whole >= float(info.min)) & (whole < float(info.max) + (1 if info.bits == 32 else 0))
        edge = np.where(np.isnan(whole), 0, np.where(whole < 0, info.min, info.max)).astype(kind)
        return np.asarray(np.where(inside, np.where(inside, whole, 0).astype(kind), edge))
    near: Array = values.view(TYPES[source]).astype(kind)
    if mode == "rn":
        return near

    def nudge(given: list[Any], guess: Any) -> Any:
        number = given[0].item()
        if not (math.isfinite(number) and np.isfinite(guess)):
            return guess
        exact = Fraction(number)
        return nearest(exact, guess, mode, lambda x: x - exact)

    return _each(near, [values.view(TYPES[source])], nudge)
