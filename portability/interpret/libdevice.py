"""libdevice on the CPU: what a symbol of NVIDIA's or AMD's device library computes, by numpy, math and torch.

Which symbol a name means for which types is taken from Triton's own table of the CUDA library, which has the most
names (197 of 198). The vendors' symbols for one function are then one name: `__nv_cbrtf` and `__ocml_cbrt_f32` are both
`cbrt`. float32 results are rounded once from float64; a device's own may be a few units in the last place off, as its
tables of accuracy say, and the `fast_` variants more.
"""

from __future__ import annotations

import importlib
import math
import re
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from portability.interpret.bits import INTEGERS
from portability.interpret.report import Unsupported
from portability.interpret.rounding import arithmetic, computed, conversion, converted

Array = NDArray[Any]
Function = Callable[..., Any]

VENDORS = ("cuda", "hip")  # whose tables say for which types a name is declared, the longer first


def emulated(name: str, bind: Callable[[Any], Function]) -> Function:
    """Return what `libdevice.name` is in a kernel: dispatched by type as Triton does, computed by `compute`.

    `bind` binds a builtin to the front end.
    """
    for vendor in VENDORS:
        declared = getattr(importlib.import_module(f"triton.language.extra.{vendor}.libdevice"), name, None)
        if declared is not None:
            return bind(declared)

    def missing(*_: Any, **__: Any) -> Any:
        raise Unsupported(f"libdevice.{name} is not computed: no library declares its types")

    return missing


def compute(symbol: str, args: list[Array]) -> Array:
    """Return the values of a library symbol on arrays. Raises `Unsupported` naming the symbol where it is not known."""
    name = named(symbol)
    directed = arithmetic(name)
    if directed is not None:
        return computed(*directed, args)
    cast = conversion(name)
    if cast is not None:
        return converted(*cast, args[0])
    for key in (name, name.removesuffix("f"), name.removesuffix("d"), name.removesuffix("ll")):
        if key in INTEGERS:
            return np.asarray(INTEGERS[key](*args))
        if key in FLOATS:
            kind = next(a.dtype for a in args if a.dtype.kind == "f")
            values = np.asarray(FLOATS[key](*(a.astype(np.float64) if a.dtype.kind == "f" else a for a in args)))
            return values.astype(kind) if values.dtype.kind == "f" else values
    raise Unsupported(f"{symbol} is not computed by the interpreter")


AMD_NAMES = {"popcount": "popc", "pown": "powi", "iabs": "abs", "i0": "cyl_bessel_i0", "i1": "cyl_bessel_i1"}


def named(symbol: str) -> str:
    """Return the function's name in a vendor's symbol: of `__nv_fast_cosf` it is `cosf`, of `__ocml_cos_f32` `cos`."""
    found = re.fullmatch(r"__(?:nv|ocml|ockl|triton_hip)_(?:fast_)?(\w+?)(?:_[fu](?:16|32|64))?", symbol)
    name = found[1] if found else symbol
    return name if symbol.startswith("__nv_") else AMD_NAMES.get(name, name)


def _torch(function: Callable[..., torch.Tensor]) -> Function:
    return lambda *args: function(*(torch.from_numpy(np.ascontiguousarray(a)) for a in args)).numpy()


def _each(function: Callable[..., float]) -> Function:
    """A function of math on arrays; where it raises, NaN."""

    def one(*args: float) -> float:
        try:
            return function(*args)
        except (ValueError, OverflowError):
            return math.nan

    return np.vectorize(one, otypes=[np.float64])


def _gamma(x: float) -> float:
    if x == 0:
        return math.copysign(math.inf, x)
    try:
        return math.gamma(x)
    except OverflowError:
        return math.inf


def _bessel_j(n: int, x: float) -> float:
    """J_n(x) = 1/π ∫₀^π cos(nτ - x sin τ) dτ, by the midpoint rule, which is exact up to J of order 2·points - n."""
    points = int(2 * (abs(n) + abs(x))) + 64
    tau = (np.arange(points) + 0.5) * math.pi / points
    return float(np.cos(n * tau - x * np.sin(tau)).mean())


def _bessel_y(n: int, x: float) -> float:
    """Y_n(x) by its recurrence from Y_0 and Y_1, which is stable upwards; NaN for x < 0.

    These two by Neumann's series (Abramowitz and Stegun 9.1.89) and its derivative: torch's own functions, at float64
    too, are right to 1e-7 only around x = 5.
    """
    if not x > 0 or math.isinf(x):
        return -math.inf if x == 0 else 0.0 if x > 0 else math.nan
    sign = -1.0 if n < 0 and n % 2 else 1.0
    terms = range(1, int(x) + 20)
    j = [_bessel_j(k, x) for k in range(2 * len(terms) + 2)]
    logarithm = math.log(x / 2) + float(np.euler_gamma)
    below: float = 2 / math.pi * (logarithm * j[0] - 2 * sum((-1) ** k * j[2 * k] / k for k in terms))
    series = sum((-1) ** k * (j[2 * k - 1] - j[2 * k + 1]) / k for k in terms)
    here: float = -2 / math.pi * (j[0] / x - logarithm * j[1] - series)
    if n == 0:
        return below
    for k in range(1, abs(n)):
        below, here = here, 2 * k / x * here - below
    return sign * here


def _half_away(x: Array) -> Array:
    """Rounded to an integer, halves away from zero; exact also beyond 2^52, where every float64 is one."""
    whole = np.trunc(x)
    return np.where(np.abs(x - whole) >= 0.5, whole + np.copysign(1, x), whole)


def _turns(function: Function) -> Function:
    """sin(πx) or cos(πx), the argument reduced exactly first."""
    return lambda x: function(np.pi * np.fmod(x, 2.0))


def _exponent(x: Array) -> Array:
    """The exponent of |x| = f·2^e with 1 <= f < 2, as a float; -inf for 0."""
    return np.where(x == 0, -np.inf, np.where(np.isfinite(x), np.frexp(x)[1] - 1.0, np.abs(x)))


def _ilogb(x: Array) -> Array:
    special = np.where(x == 0, -(2**31), 2**31 - 1)  # FP_ILOGB0, and INT_MAX for infinities
    whole = np.where(np.isfinite(x) & (x != 0), np.frexp(x)[1] - 1, special)
    return np.where(np.isnan(x), -(2**31), whole).astype(np.int32)


def _flag(function: Function) -> Function:
    return lambda x: function(x).astype(np.int32)


def _norm(*x: Array) -> Array:
    return np.sqrt(sum(v * v for v in x))


FLOATS: dict[str, Function] = {
    **{name: getattr(np, name) for name in (
        "floor", "ceil", "trunc", "exp2", "sqrt", "sin", "cos", "tan", "log2", "exp", "cosh", "sinh", "tanh", "log",
        "log10", "log1p", "expm1", "hypot", "cbrt", "rint", "copysign", "fmod",
    )},
    "fabs": np.abs, "nearbyint": np.rint, "round": _half_away, "llrint": lambda x: np.rint(x).astype(np.int64),
    "llround": lambda x: _half_away(x).astype(np.int64), "rsqrt": lambda x: 1 / np.sqrt(x),
    "saturate": lambda x: np.clip(np.nan_to_num(x, nan=0.0), 0, 1), "fdivide": np.divide, "exp10": lambda x: 10.0**x,
    "pow": np.power, "powi": lambda x, n: np.power(x, n.astype(np.float64)), "atan2": np.arctan2, "atan": np.arctan,
    "asin": np.arcsin, "acos": np.arccos, "acosh": np.arccosh, "asinh": np.arcsinh, "atanh": np.arctanh,
    "sinpi": _turns(np.sin), "cospi": _turns(np.cos), "rhypot": lambda x, y: 1 / np.hypot(x, y),
    "norm3d": _norm, "norm4d": _norm, "rnorm3d": lambda *x: 1 / _norm(*x), "rnorm4d": lambda *x: 1 / _norm(*x),
    "rcbrt": lambda x: 1 / np.cbrt(x), "fma": lambda x, y, z: x * y + z, "remainder": _each(math.remainder),
    "fdim": lambda x, y: np.where(np.isnan(x) | np.isnan(y), np.nan, np.maximum(x - y, 0)),
    "ldexp": np.ldexp, "scalbn": np.ldexp, "logb": _exponent, "ilogb": _ilogb, "isnan": _flag(np.isnan),
    "isinf": _flag(np.isinf), "signbit": _flag(np.signbit), "finite": _flag(np.isfinite),
    "isfinite": _flag(np.isfinite),
    "erf": _torch(torch.special.erf), "erfinv": _torch(torch.special.erfinv), "erfc": _torch(torch.special.erfc),
    "erfcx": _torch(torch.special.erfcx), "normcdf": _torch(torch.special.ndtr),
    "normcdfinv": _torch(torch.special.ndtri),
    "erfcinv": lambda x: -_torch(torch.special.ndtri)(x / 2) / math.sqrt(2),
    "lgamma": _torch(torch.lgamma), "tgamma": _each(_gamma), "cyl_bessel_i0": _torch(torch.special.i0),
    "cyl_bessel_i1": _torch(torch.special.i1),
    "j0": _each(partial(_bessel_j, 0)), "j1": _each(partial(_bessel_j, 1)), "jn": _each(_bessel_j),
    "y0": _each(partial(_bessel_y, 0)), "y1": _each(partial(_bessel_y, 1)), "yn": _each(_bessel_y),
}  # fmt: skip
