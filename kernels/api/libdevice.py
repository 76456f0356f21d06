"""The functions of libdevice on real numbers, from one table.

`ulp` is how far off a result may be: the larger of what the accuracy tables of the CUDA Math API and OpenCL's full
profile allow.
"""

import math
from functools import partial

import torch

from portability.kernels.api import _rounding
from portability.kernels.api._libdevice import DOUBLE, FLOATS, SINGLE, correct, function, given, halves
from portability.kernels.api._probe import BLOCK, between, empty, normals


def special(draw):
    """Zeros, subnormals, extremes, infinities and NaN among normal values."""
    return (draw.special(BLOCK),)


def with_integer(low, high, first=False):
    """A block of positive numbers, and one of integers in [low, high)."""

    def draw(d):
        x, n = d.uniform(BLOCK, low=0.5, high=4.0), d.integers(BLOCK, low=low, high=high, dtype=torch.int32)
        return (n, x) if first else (x, n)

    return draw


def elementwise(operation):
    """`operation` of Python's `math` on every element."""

    def reference(*tensors):
        columns = zip(*(t.tolist() for t in tensors), strict=True)
        return torch.tensor([operation(*column) for column in columns], dtype=torch.float64)

    return reference


def away(x):
    """To the nearest integer, halves away from zero."""
    return x.sign() * torch.floor(x.abs() + 0.5)


def bessel_j(n, x):
    """J_n(x) = 1/2π ∫ cos(nt - x sin t) dt over a period, in equal steps, which converge exponentially."""
    t = (torch.arange(128, dtype=torch.float64) + 0.5) * (2 * torch.pi / 128)
    n = torch.as_tensor(n, dtype=torch.float64).reshape(-1, 1)
    return torch.cos(n * t - x.double()[:, None] * torch.sin(t)).mean(1)


def bessel_y0(x):
    """Neumann's series (Abramowitz and Stegun 9.1.89)."""
    series = sum((-1) ** k * bessel_j(2 * k, x) / k for k in range(1, 20))
    return 2 / torch.pi * ((torch.log(x / 2) + EULER) * bessel_j(0, x) - 2 * series)


def bessel_y1(x):
    """Y₁ = -Y₀′, term by term."""
    series = sum((-1) ** k * (bessel_j(2 * k - 1, x) - bessel_j(2 * k + 1, x)) / k for k in range(1, 20))
    return -2 / torch.pi * (bessel_j(0, x) / x - (torch.log(x / 2) + EULER) * bessel_j(1, x) - series)


def bessel_y(n, x):
    """Y_n by upward recurrence: Y_{n+1} = 2n/x · Y_n - Y_{n-1}."""
    orders = [bessel_y0(x), bessel_y1(x)]
    for k in range(1, 4):
        orders.append(2 * k / x * orders[k] - orders[k - 1])
    return torch.stack(orders).gather(0, n.long()[None])[0]


def norm(*tensors):
    return torch.sqrt(sum(t * t for t in tensors))


def exponent(x):
    return torch.frexp(x).exponent - 1


EULER = 0.5772156649015329
SPREAD, POSITIVE, UNIT = between(-4.0, 4.0), between(0.25, 4.0), between(-0.95, 0.95)
ABOVE_ONE, PROBABILITY, LONG = between(1.25, 8.0), between(0.05, 0.95), between(0.5, 8.0)

# name: reference, arguments, inputs. The result is a number of the dtype, so that it is exact.
EXACT = {
    "abs": (torch.abs, 1, SPREAD),
    "floor": (torch.floor, 1, SPREAD),
    "ceil": (torch.ceil, 1, SPREAD),
    "trunc": (torch.trunc, 1, SPREAD),
    "rint": (torch.round, 1, halves(-1000.0)),
    "nearbyint": (torch.round, 1, halves(-1000.0)),
    "round": (away, 1, halves(-1000.0)),
    "logb": (lambda x: exponent(x).to(torch.float64), 1, POSITIVE),
    "copysign": (torch.copysign, 2, normals(2)),
    "fmod": (torch.fmod, 2, between(0.25, 4.0, 2)),
    "remainder": (elementwise(math.remainder), 2, between(0.25, 4.0, 2)),
    "fdim": (lambda x, y: (x - y).clamp(min=0), 2, normals(2)),
    "ldexp": (lambda x, n: x * torch.exp2(n.double()), 2, with_integer(-8, 9)),
    "scalbn": (lambda x, n: x * torch.exp2(n.double()), 2, with_integer(-8, 9)),
}
# name: reference, arguments, inputs, ulp. Those of NEAR_ZERO are also off by a unit of 1, since they pass through 0.
NEAR_ZERO = ("sinpi", "cospi", "j0", "j1", "y0", "y1")
CLOSE = {
    "sqrt": (torch.sqrt, 1, POSITIVE, 3),
    "rsqrt": (torch.rsqrt, 1, POSITIVE, 2),
    "cbrt": (lambda x: x.sign() * x.abs() ** (1 / 3), 1, SPREAD, 2),
    "rcbrt": (lambda x: x.sign() * x.abs() ** (-1 / 3), 1, POSITIVE, 2),
    "hypot": (torch.hypot, 2, between(0.25, 4.0, 2), 4),
    "rhypot": (lambda x, y: 1 / torch.hypot(x, y), 2, between(0.25, 4.0, 2), 2),
    "norm3d": (norm, 3, normals(3), 3),
    "rnorm3d": (lambda *t: 1 / norm(*t), 3, normals(3), 2),
    "norm4d": (norm, 4, normals(4), 3),
    "rnorm4d": (lambda *t: 1 / norm(*t), 4, normals(4), 2),
    "exp": (torch.exp, 1, SPREAD, 3),
    "exp2": (torch.exp2, 1, SPREAD, 3),
    "exp10": (lambda x: 10.0**x, 1, SPREAD, 3),
    "expm1": (torch.expm1, 1, SPREAD, 3),
    "log": (torch.log, 1, POSITIVE, 3),
    "log2": (torch.log2, 1, POSITIVE, 3),
    "log10": (torch.log10, 1, POSITIVE, 3),
    "log1p": (torch.log1p, 1, POSITIVE, 2),
    "pow": (torch.pow, 2, between(0.25, 4.0, 2), 16),
    "sin": (torch.sin, 1, SPREAD, 4),
    "cos": (torch.cos, 1, SPREAD, 4),
    "tan": (torch.tan, 1, between(-1.5, 1.5), 5),
    "sinpi": (lambda x: torch.sin(torch.pi * x), 1, UNIT, 4),
    "cospi": (lambda x: torch.cos(torch.pi * x), 1, UNIT, 4),
    "asin": (torch.asin, 1, UNIT, 4),
    "acos": (torch.acos, 1, UNIT, 4),
    "atan": (torch.atan, 1, SPREAD, 5),
    "atan2": (torch.atan2, 2, normals(2), 6),
    "sinh": (torch.sinh, 1, SPREAD, 4),
    "cosh": (torch.cosh, 1, SPREAD, 4),
    "tanh": (torch.tanh, 1, SPREAD, 5),
    "asinh": (torch.asinh, 1, SPREAD, 4),
    "acosh": (torch.acosh, 1, ABOVE_ONE, 4),
    "atanh": (torch.atanh, 1, UNIT, 5),
    "erf": (torch.erf, 1, SPREAD, 16),
    "erfc": (torch.erfc, 1, SPREAD, 16),
    "erfcx": (torch.special.erfcx, 1, SPREAD, 16),
    "erfinv": (torch.erfinv, 1, UNIT, 8),
    "erfcinv": (lambda x: torch.erfinv(1 - x), 1, between(0.05, 1.95), 8),
    "normcdf": (torch.special.ndtr, 1, between(-2.0, 2.0), 16),
    "normcdfinv": (torch.special.ndtri, 1, PROBABILITY, 5),
    "tgamma": (elementwise(math.gamma), 1, POSITIVE, 16),
    "lgamma": (torch.lgamma, 1, between(2.5, 8.0), 6),
    "cyl_bessel_i0": (torch.special.i0, 1, SPREAD, 6),
    "cyl_bessel_i1": (torch.special.i1, 1, SPREAD, 6),
    "j0": (partial(bessel_j, 0), 1, LONG, 9),
    "j1": (partial(bessel_j, 1), 1, LONG, 9),
    "y0": (bessel_y0, 1, LONG, 9),
    "y1": (bessel_y1, 1, LONG, 9),
}
# Fast approximations, all of float32. name: reference, arguments, inputs, ulp, absolute error in units of 2⁻²¹
FAST = {
    "fast_sinf": (torch.sin, 1, between(-3.0, 3.0), 0, 1),
    "fast_cosf": (torch.cos, 1, between(-3.0, 3.0), 0, 1),
    "fast_tanf": (torch.tan, 1, UNIT, 8, 2),
    "fast_tanhf": (torch.tanh, 1, SPREAD, 8, 2),
    "fast_logf": (torch.log, 1, POSITIVE, 3, 1),
    "fast_log2f": (torch.log2, 1, POSITIVE, 3, 1),
    "fast_log10f": (torch.log10, 1, POSITIVE, 3, 1),
    "fast_expf": (torch.exp, 1, SPREAD, 7, 0),
    "fast_exp10f": (lambda x: 10.0**x, 1, SPREAD, 14, 0),
    "fast_powf": (torch.pow, 2, between(0.5, 2.0, 2), 16, 0),
    "fast_dividef": (torch.div, 2, between(0.25, 4.0, 2), 3, 0),
    "saturatef": (lambda x: x.clamp(0, 1), 1, SPREAD, 0, 0),
}
PREDICATES = {
    "isnan": (torch.isnan, FLOATS), "isinf": (torch.isinf, FLOATS), "signbit": (torch.signbit, FLOATS),
    "finitef": (torch.isfinite, SINGLE), "isfinited": (torch.isfinite, DOUBLE),
}  # fmt: skip
BOOL = empty(BLOCK, dtype=torch.bool)
INT32, INT64 = empty(BLOCK, dtype=torch.int32), empty(BLOCK, dtype=torch.int64)


def reals():
    """Functions of float32 and float64."""
    for name, (reference, count, inputs) in EXACT.items():
        dtypes = (*FLOATS, "int32", "int64") if name == "abs" else FLOATS
        yield function(name, reference, inputs, count=count, dtypes=dtypes)
    for name, (reference, count, inputs, ulp) in CLOSE.items():
        yield function(name, reference, inputs, count=count, ulp=ulp, absolute=float(name in NEAR_ZERO))
    for name, (reference, count, inputs, ulp, absolute) in FAST.items():
        yield function(name, reference, inputs, count=count, dtypes=SINGLE, ulp=ulp, absolute=float(absolute))
    # Only the upper half of a double takes part in it, so that it is no better than a float32.
    yield function(
        "rcp64h", lambda x: 1 / x, POSITIVE, dtypes=DOUBLE, ulp=32, out=empty(BLOCK, dtype=torch.float32)
    )  # fmt: skip
    for name, (reference, dtypes) in PREDICATES.items():
        yield function(name, reference, special, dtypes=dtypes, predicate=True, out=BOOL)
    for name, reference in (("llrint", torch.round), ("llround", away)):
        yield function(name, lambda x, f=reference: f(x).to(torch.int64), halves(-1000.0), out=INT64)
    yield function("ilogb", lambda x: exponent(x).to(torch.int32), POSITIVE, out=INT32)
    for name, reference in (("jn", bessel_j), ("yn", bessel_y)):  # by recurrence from 9 ulp: x 2n/x a step
        yield function(
            name, reference, with_integer(0, 4, first=True), count=2, ulp=16, absolute=72.0,
            out=lambda _, x: torch.empty_like(x),
        )  # fmt: skip
    yield function(
        "pow", torch.pow, with_integer(-4, 5), count=2, ulp=16, name="libdevice.pow.int"
    )  # fmt: skip
    yield function("nextafter", given, lambda d: (*(xy := normals(2)(d)), torch.nextafter(*xy)), count=2)
    yield correct("fma", lambda x, y, z: _rounding.value(x * y + z), "rn", count=3, low=-4.0)


CASES = [*reals()]
