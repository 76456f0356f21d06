"""Correct rounding in the four directions, in exact arithmetic: what functions that promise it are compared with."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import torch

Compare = Callable[[Fraction], Fraction]  # candidate -> something of the sign of (exact result - candidate)


def rounded(compare: Compare, guess: float, dtype: torch.dtype, mode: str) -> float:
    """Return the exact result that `compare` knows, rounded to `dtype` as `mode` says: rn, rz, rd or ru.

    `guess` is near the result. Ties go to the even neighbour.
    """
    below = _number(guess, dtype)
    while compare(Fraction(below)) < 0:
        below = _next(below, -math.inf, dtype)
    while compare(Fraction(above := _next(below, math.inf, dtype))) >= 0:
        below = above
    if compare(Fraction(below)) == 0:
        return below
    if mode == "rn":
        side = compare((Fraction(below) + Fraction(above)) / 2)
        return above if side > 0 or (side == 0 and _is_odd(below, dtype)) else below
    if mode == "rz":
        return below if compare(Fraction(0)) > 0 else above
    return below if mode == "rd" else above


def value(exact: Fraction) -> tuple[Compare, float]:
    """Return how a rational number compares, and a guess of it."""
    return (lambda candidate: exact - candidate), float(exact)


def root(x: Fraction) -> tuple[Compare, float]:
    """The same for √x."""
    return (lambda candidate: x - candidate * abs(candidate)), math.sqrt(x)


def reciprocal_root(x: Fraction) -> tuple[Compare, float]:
    """The same for 1/√x."""
    return (lambda candidate: 1 - candidate * abs(candidate) * x), 1 / math.sqrt(x)


def _number(x: float, dtype: torch.dtype) -> float:
    return torch.tensor(x, dtype=torch.float64).to(dtype).item()


def _next(x: float, towards: float, dtype: torch.dtype) -> float:
    return torch.nextafter(torch.tensor(x, dtype=dtype), torch.tensor(towards, dtype=dtype)).item()


def _is_odd(x: float, dtype: torch.dtype) -> bool:
    bits = torch.int32 if dtype is torch.float32 else torch.int64
    return bool(torch.tensor(x, dtype=dtype).view(bits).item() & 1)
