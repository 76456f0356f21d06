"""The dtypes: what a pointer to each holds, told by its name and by its value."""

from functools import partial

import torch
import triton
import triton.language as tl

from portability.kernels.api._probe import BLOCK, empty, probe

dtype = partial(probe, group="dtypes", relative=0.0, BLOCK=BLOCK)

TORCH = {
    "int1": "bool",
    **{name: name for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")},
    **{name: name for name in ("float16", "bfloat16", "float32", "float64")},
    "float8e4nv": "float8_e4m3fn",
    "float8e5": "float8_e5m2",
    "float8e4b8": "float8_e4m3fnuz",
    "float8e5b16": "float8_e5m2fnuz",
}


@triton.jit
def dtype_kernel(x_ptr, out_ptr, NAME: tl.constexpr, BLOCK: tl.constexpr):
    """out = x in float32, whose dtype is tl.NAME."""
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    tl.static_assert(x.dtype == getattr(tl, NAME))
    tl.store(out_ptr + offsets, x.to(tl.float32))


@triton.jit
def float8e4b15_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    """out = the bytes x as float8e4b15, in float32."""
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets).to(tl.float8e4b15, bitcast=True)
    tl.store(out_ptr + offsets, x.to(tl.float16).to(tl.float32))


@triton.jit
def pi32_t_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    """out = x, through a pointer that is cast to a pointer to int32."""
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(x_ptr.to(tl.int64).to(tl.pi32_t) + offsets))


@triton.jit
def void_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    """out = x, in a dtype that is not void."""
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    tl.static_assert(x.dtype != tl.void)
    tl.store(out_ptr + offsets, x)


@triton.jit
def properties_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    """out = x times the width of its dtype, which knows what kind of number it is."""
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    tl.static_assert(isinstance(x.dtype, tl.dtype))
    tl.static_assert(x.dtype.is_floating() != x.dtype.is_int())
    tl.static_assert(x.dtype.scalar == x.type.element_ty)
    tl.store(out_ptr + offsets, x * x.dtype.primitive_bitwidth)


def in_float32(x):
    return x.to(torch.float64)


def decoded(x):
    """A sign, 4 bits of exponent biased by 15, 3 bits of mantissa."""
    exponent, mantissa = (x >> 3 & 15).to(torch.float64), (x & 7).to(torch.float64)
    magnitude = torch.where(exponent == 0, mantissa * 2.0**-17, (1 + mantissa / 8) * torch.exp2(exponent - 15))
    return torch.where(x > 127, -magnitude, magnitude)


def nonnegative(draw):
    """Bytes of finite numbers of both signs."""
    return (draw.integers(BLOCK, low=0, high=120) + 128 * draw.integers(BLOCK, low=0, high=2),)


WIDTH = {"float32": 32, "int8": 8}

CASES = [
    *(
        dtype(
            f"tl.{name}", dtype_kernel, in_float32, out=empty(BLOCK, dtype=torch.float32), dtypes=(torch_name,),
            NAME=name,
        )
        for name, torch_name in TORCH.items()
    ),
    dtype(
        "tl.float8e4b15", float8e4b15_kernel, decoded, inputs=nonnegative, out=empty(BLOCK, dtype=torch.float32),
        dtypes=("uint8",),
    ),
    dtype("tl.pi32_t", pi32_t_kernel, torch.clone, dtypes=("int32",)),
    dtype("tl.void", void_kernel, torch.clone, dtypes=("float32",)),
    dtype("tl.dtype", properties_kernel, lambda x: x * 32, dtypes=("float32", "int32", "uint32")),
]  # fmt: skip
