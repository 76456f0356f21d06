"""Python's operators with a number on the left, which the tensor on the right answers."""

from functools import partial

import torch
import triton
import triton.language as tl  # noqa: F401 (Triton's interpreter wants it in the module of a jitted function)

from portability.kernels.api._probe import BLOCK, called, empty
from portability.kernels.api.operators import nonzero, quotient, shifts

operator = partial(called, group="operators", arity=1)

BOOL = empty(BLOCK, dtype=torch.bool)
one_nonzero, one_shift = partial(nonzero, count=1), partial(shifts, count=1)


@triton.jit
def radd(x):
    return 7 + x


@triton.jit
def rsub(x):
    return 7 - x


@triton.jit
def rmul(x):
    return 7 * x


@triton.jit
def rtruediv(x):
    return 7 / x


@triton.jit
def rfloordiv(x):
    return 7 // x


@triton.jit
def rmod(x):
    return 7 % x


@triton.jit
def rand(x):
    return 7 & x


@triton.jit
def ror(x):
    return 7 | x


@triton.jit
def rxor(x):
    return 7 ^ x


@triton.jit
def rlshift(x):
    return 7 << x


@triton.jit
def rrshift(x):
    return 100 >> x


@triton.jit
def rlt(x):
    return 2 < x  # noqa: SIM300 (reflected is what is meant)


@triton.jit
def rle(x):
    return 2 <= x  # noqa: SIM300


@triton.jit
def rgt(x):
    return 2 > x  # noqa: SIM300


@triton.jit
def rge(x):
    return 2 >= x  # noqa: SIM300


@triton.jit
def req(x):
    return 2 == x  # noqa: SIM300


@triton.jit
def rne(x):
    return 2 != x  # noqa: SIM300


REFLECTED = {
    "radd": (radd, lambda x: 7 + x, ("float32", "int32"), {"absolute": 1.0}),
    "rsub": (rsub, lambda x: 7 - x, ("float32", "int32"), {"absolute": 1.0}),
    "rmul": (rmul, lambda x: 7 * x, ("float32", "int32"), {}),
    "rtruediv": (rtruediv, lambda x: 7 / x, ("float32",), {"inputs": one_nonzero}),
    "rfloordiv": (
        rfloordiv,
        lambda x: quotient(torch.full_like(x, 7), x),
        ("int32",),
        {"inputs": one_nonzero},
    ),
    "rmod": (rmod, lambda x: torch.full_like(x, 7).fmod(x), ("int32",), {"inputs": one_nonzero}),
    "rand": (rand, lambda x: 7 & x, ("int32",), {}),
    "ror": (ror, lambda x: 7 | x, ("int32",), {}),
    "rxor": (rxor, lambda x: 7 ^ x, ("int32",), {}),
    "rlshift": (rlshift, lambda x: 7 << x, ("int32",), {"inputs": one_shift}),
    "rrshift": (rrshift, lambda x: 100 >> x, ("int32",), {"inputs": one_shift}),
}
REFLECTED_COMPARISONS = {
    "rlt": (rlt, lambda x: 2 < x), "rle": (rle, lambda x: 2 <= x), "rgt": (rgt, lambda x: 2 > x),  # noqa: SIM300
    "rge": (rge, lambda x: 2 >= x), "req": (req, lambda x: 2 == x), "rne": (rne, lambda x: 2 != x),  # noqa: SIM300
}  # fmt: skip
CASES = [
    *(
        operator(f"tensor.__{name}__", function, reference, name=f"operator.{name}", dtypes=dtypes, **more)
        for name, (function, reference, dtypes, more) in REFLECTED.items()
    ),
    *(
        operator(
            f"tensor.__{name}__", function, reference, name=f"operator.{name}", out=BOOL,
            dtypes=("int32",),
        )
        for name, (function, reference) in REFLECTED_COMPARISONS.items()
    ),
]  # fmt: skip
