"""Python's arithmetic on tensors, and the dtype of what it gives.

Integers divide as C does: the quotient is rounded towards zero, and the remainder has the sign of the dividend.
"""

from functools import partial

import torch
import triton
import triton.language as tl

from portability.kernels.api._probe import BLOCK, called, empty, probe, wide

operator = partial(called, group="operators", arity=2)

DTYPES = ("float32", "bfloat16", "int32", "uint8")
INTEGER = ("int32", "int8", "uint32")


@triton.jit
def add(x, y):
    return x + y


@triton.jit
def sub(x, y):
    return x - y


@triton.jit
def mul(x, y):
    return x * y


@triton.jit
def truediv(x, y):
    return x / y


@triton.jit
def floordiv(x, y):
    return x // y


@triton.jit
def mod(x, y):
    return x % y


@triton.jit
def neg(x):
    return -x


@triton.jit
def invert(x):
    return ~x


@triton.jit
def and_(x, y):
    return x & y


@triton.jit
def or_(x, y):
    return x | y


@triton.jit
def xor(x, y):
    return x ^ y


@triton.jit
def lshift(x, y):
    return x << y


@triton.jit
def rshift(x, y):
    return x >> y


@triton.jit
def scalar_float(x):
    return x + 0.5


@triton.jit
def scalar_large(x):
    return x + 300


@triton.jit
def promote_kernel(x_ptr, y_ptr, out_ptr, BLOCK: tl.constexpr):
    """out = x + y, whose dtype must be that of out."""
    offsets = tl.arange(0, BLOCK)
    value = tl.load(x_ptr + offsets) + tl.load(y_ptr + offsets)
    tl.static_assert(value.dtype == out_ptr.dtype.element_ty)
    tl.store(out_ptr + offsets, value)


@triton.jit
def mixed_kernel(x_ptr, y_ptr, out_ptr, NAME: tl.constexpr, BLOCK: tl.constexpr):
    """out = x // y or x % y, of a signed by an unsigned integer."""
    offsets = tl.arange(0, BLOCK)
    x, y = tl.load(x_ptr + offsets), tl.load(y_ptr + offsets)
    tl.store(out_ptr + offsets, x // y if NAME == "floordiv" else x % y)


def nonzero(draw, count=2):
    """Blocks whose last has no zero."""
    last = draw.normal(BLOCK) if draw.dtype.is_floating_point else draw.integers(BLOCK).to(torch.int64)
    return (draw.normal(BLOCK), torch.where(last == 0, 1, last).to(draw.dtype))[-count:]


def shifts(draw, count=2):
    """Integers of both signs, and by how far to shift them."""
    return (draw.integers(BLOCK), draw.integers(BLOCK, low=0, high=5))[-count:]


def whole(operation):
    """`operation` in a dtype in which torch computes, and back."""
    return lambda *tensors: operation(*map(wide, tensors)).to(tensors[0].dtype)


def quotient(x, y):
    return torch.div(x, y, rounding_mode="trunc")


def left(x, y):
    return x << y


def logical_right(x, y):
    """Unsigned integers of 64 bits are small here, so that an arithmetic shift is a logical one."""
    return x >> y


# name: function, reference, dtypes, more
BINARY = {
    "add": (add, torch.add, DTYPES, {"absolute": 1.0}),
    "sub": (sub, torch.sub, DTYPES, {"absolute": 1.0}),
    "mul": (mul, torch.mul, DTYPES, {}),
    "mod": (mod, torch.fmod, ("int32", "uint32", "int64", "float32"), {"inputs": nonzero, "absolute": 1.0}),
    "floordiv": (floordiv, quotient, ("int32", "uint32", "int64", "float32"), {"inputs": nonzero}),
    "and": (and_, torch.bitwise_and, ("int32", "uint32", "bool"), {}),
    "or": (or_, torch.bitwise_or, ("int32", "uint32", "bool"), {}),
    "xor": (xor, torch.bitwise_xor, ("int32", "uint32", "bool"), {}),
    "lshift": (lshift, left, INTEGER, {"inputs": shifts}),
    "rshift": (rshift, logical_right, INTEGER, {"inputs": shifts}),
}
# The dtype of a sum of two dtypes: the wider kind, the wider number, and the unsigned one of two of a width.
PROMOTIONS = (
    ("int8", "int32", "int32"), ("int8", "uint8", "uint8"), ("int32", "uint32", "uint32"), ("uint8", "int64", "int64"),
    ("bool", "int32", "int32"), ("int32", "float16", "float16"), ("int64", "float32", "float32"),
    ("float16", "float32", "float32"), ("float16", "bfloat16", "float16"), ("bfloat16", "float32", "float32"),
    ("float32", "float64", "float64"),
)  # fmt: skip


def promoted(x_dtype, y_dtype, out_dtype):
    """The probe of the dtype of a sum."""
    second, dtype = getattr(torch, y_dtype), getattr(torch, out_dtype)
    exact = torch.float64 if dtype.is_floating_point else dtype
    return probe(
        "tensor.__add__", promote_kernel, lambda x, y: (wide(x) + wide(y)).to(exact),
        name=f"operator.promote.{x_dtype}.{y_dtype}", group="operators", absolute=8.0, out=empty(BLOCK, dtype=dtype),
        inputs=lambda d: (d.integers(BLOCK, low=0, high=9), d.integers(BLOCK, low=0, high=9, dtype=second)),
        dtypes=(x_dtype,), BLOCK=BLOCK,
    )  # fmt: skip


def mixed(name, reference):
    """The probe of a division of a signed by an unsigned integer, which has no sign to follow."""
    return probe(
        f"tensor.__{name}__", mixed_kernel, reference, name=f"operator.{name}.mixed_signs", group="operators",
        inputs=lambda d: (d.integers(BLOCK, low=0, high=100), d.integers(BLOCK, low=1, high=9, dtype=torch.uint32)),
        dtypes=("int32",), NAME=name, BLOCK=BLOCK,
    )  # fmt: skip


CASES = [
    *(
        operator(f"tensor.__{name}__", function, whole(reference), name=f"operator.{name}", dtypes=dtypes, **more)
        for name, (function, reference, dtypes, more) in BINARY.items()
    ),
    operator(
        "tensor.__truediv__", truediv, torch.div, name="operator.truediv", inputs=nonzero,
        dtypes=("float32", "float16", "bfloat16", "float64"),
    ),
    operator(
        "tensor.__truediv__", truediv, torch.div, name="operator.truediv.integers", inputs=nonzero,
        out=empty(BLOCK, dtype=torch.float32), dtypes=("int32", "int8"),
    ),
    operator(
        "tensor.__neg__", neg, torch.neg, name="operator.neg", arity=1, dtypes=("float32", "float16", "int32", "int8"),
        relative=0.0,
    ),
    operator(
        "tensor.__invert__", invert, torch.bitwise_not, name="operator.invert", arity=1,
        dtypes=("int32", "int8", "bool"),
    ),
    operator(
        "tensor.__add__", scalar_float, lambda x: x + 0.5, name="operator.add.scalar", arity=1,
        dtypes=("float32", "float16", "bfloat16"), absolute=1.0,
    ),
    operator(
        "tensor.__add__", scalar_large, lambda x: x + 300, name="operator.add.scalar_out_of_range", arity=1,
        inputs=lambda d: (d.integers(BLOCK, low=0, high=9),), out=empty(BLOCK, dtype=torch.int32),
        dtypes=("int32", "int8", "uint8"),
    ),
    *(promoted(*dtypes) for dtypes in PROMOTIONS),
    mixed("floordiv", lambda x, y: x // wide(y).to(x.dtype)),
    mixed("mod", lambda x, y: x % wide(y).to(x.dtype)),
]  # fmt: skip
