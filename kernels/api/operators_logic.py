"""Comparisons, logic, and Python's own functions and constructions on tensors."""

from functools import partial

import torch
import triton
import triton.language as tl  # noqa: F401 (Triton's interpreter wants it in the module of a jitted function)

from portability.kernels.api._probe import BLOCK, called, empty, wide

operator = partial(called, group="operators", arity=2)

BOOL = empty(BLOCK, dtype=torch.bool)


@triton.jit
def not_(x):
    return not x


@triton.jit
def lt(x, y):
    return x < y


@triton.jit
def le(x, y):
    return x <= y


@triton.jit
def gt(x, y):
    return x > y


@triton.jit
def ge(x, y):
    return x >= y


@triton.jit
def eq(x, y):
    return x == y


@triton.jit
def ne(x, y):
    return x != y


@triton.jit
def logical_and(x, y):
    return x > 0 and y > 0


@triton.jit
def logical_or(x, y):
    return x > 0 or y > 0


@triton.jit
def chained(x, y):
    return 0 < x < y


@triton.jit
def in_place(x, y):
    x += y
    x *= 2
    x -= y
    return x


@triton.jit
def ternary(x, y):
    return x if x.numel > 1 else y


@triton.jit
def power(x, y):
    return x**2 + y


@triton.jit
def matmul(x, y):
    return x @ y


@triton.jit
def python_abs(x):
    return abs(x)


@triton.jit
def python_max(x, y):
    return max(x, y)


@triton.jit
def python_min(x, y):
    return min(x, y)


@triton.jit
def python_float(x):
    return x + float("inf")


COMPARISONS = {
    "lt": (lt, torch.lt), "le": (le, torch.le), "gt": (gt, torch.gt), "ge": (ge, torch.ge), "eq": (eq, torch.eq),
    "ne": (ne, torch.ne),
}  # fmt: skip
CASES = [
    *(
        operator(
            f"tensor.__{name}__", function, lambda x, y, r=reference: r(wide(x), wide(y)), name=f"operator.{name}",
            out=BOOL, dtypes=("float32", "int32"),
        )
        for name, (function, reference) in COMPARISONS.items()
    ),
    operator(
        "tensor.__not__", not_, lambda x: x == 0, name="operator.not", arity=1, out=BOOL, dtypes=("int32", "bool"),
    ),
    operator(
        "operator.logical_and", logical_and, lambda x, y: (x > 0) & (y > 0), out=BOOL,
        dtypes=("float32", "int32"),
    ),
    operator(
        "operator.logical_or", logical_or, lambda x, y: (x > 0) | (y > 0), out=BOOL,
        dtypes=("float32", "int32"),
    ),
    operator("operator.chained", chained, lambda x, y: (x > 0) & (x < y), out=BOOL, dtypes=("float32", "int32")),
    operator("operator.in_place", in_place, lambda x, y: 2 * (x + y) - y, dtypes=("float32", "int32"), absolute=4.0),
    operator("operator.ternary", ternary, lambda x, y: x, dtypes=("float32",), relative=0.0),
    operator("operator.pow", power, lambda x, y: x**2 + y, dtypes=("float32", "int32"), absolute=4.0),
    operator("operator.matmul", matmul, lambda x, y: x @ y, out=empty(), dtypes=("float32",), absolute=BLOCK),
    operator("operator.abs", python_abs, torch.abs, arity=1, dtypes=("float32", "int32"), relative=0.0),
    operator("operator.max", python_max, torch.maximum, dtypes=("float32", "int32"), relative=0.0),
    operator("operator.min", python_min, torch.minimum, dtypes=("float32", "int32"), relative=0.0),
    operator(
        "operator.float", python_float, lambda x: x + float("inf"), arity=1, dtypes=("float32", "float16"),
        relative=0.0,
    ),
]  # fmt: skip
