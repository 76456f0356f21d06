"""Casts: from every dtype to every other, in both rounding modes, and of the bits alone.

The probe `cast.float16` at the dtype `float32` casts float32 to float16. What a cast gives is compared by its bits.
"""

from functools import partial

import torch
import triton
import triton.language as tl

from portability.kernels.api._probe import ALL, BLOCK, FLOAT8, FLOATS, UNSIGNED, empty, probe

cast = partial(probe, "tl.cast", group="casts", relative=0.0, BLOCK=BLOCK)

NAMES = {
    "bool": tl.int1,
    "float8_e4m3fn": tl.float8e4nv,
    "float8_e5m2": tl.float8e5,
    "float8_e4m3fnuz": tl.float8e4b8,
    "float8_e5m2fnuz": tl.float8e5b16,
}
BITS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


@triton.jit
def cast_kernel(x_ptr, out_ptr, DTYPE: tl.constexpr, BITS: tl.constexpr, ROUNDING: tl.constexpr, BLOCK: tl.constexpr):
    """out = x as a DTYPE, seen as BITS where that is given."""
    offsets = tl.arange(0, BLOCK)
    value = tl.cast(tl.load(x_ptr + offsets), DTYPE, fp_downcast_rounding=ROUNDING)
    tl.store(out_ptr + offsets, value if BITS is None else value.to(BITS, bitcast=True))


@triton.jit
def bitcast_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    """out = the bits of x."""
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.cast(tl.load(x_ptr + offsets), out_ptr.dtype.element_ty, bitcast=True))


def inputs_for(name):
    """Values that a `name` holds; a negative float has no unsigned value, and what its cast gives is not defined."""
    return partial(values, lowest=0.0) if name in UNSIGNED else values


def language(name):
    """The language's dtype for torch's `name`."""
    return NAMES.get(name) or getattr(tl, name)


def values(draw, lowest=-8.0):
    """Values that every dtype holds, some of them 0."""
    if not draw.dtype.is_floating_point:
        return (draw.integers(BLOCK),)
    x = draw.uniform(BLOCK, low=lowest, high=8.0)
    x.view(BITS[x.dtype.itemsize])[::8] = 0
    return (x,)


def converted(x, dtype):
    """The bits of `x` as a `dtype`: to nearest, towards zero for an integer, and whether it is not 0 for a bool."""
    if dtype is torch.bool:
        return x != 0
    if not dtype.is_floating_point:
        return (x.trunc() if x.is_floating_point() else x).to(torch.int64).to(dtype)
    return x.to(torch.float64).to(dtype).view(BITS[dtype.itemsize])


def cast_to(target, reference, rounding=None, seen_as_bits=True, **more):
    """The probe of casts to the dtype `target`."""
    dtype = getattr(torch, target)
    bits = BITS[dtype.itemsize] if seen_as_bits and dtype.is_floating_point else None
    return cast(
        cast_kernel,
        partial(reference, dtype=dtype),
        out=empty(BLOCK, dtype=bits or dtype),
        DTYPE=language(target),
        BITS=bits and language(str(bits).removeprefix("torch.")),
        ROUNDING=rounding,
        **more,
    )


def towards_zero(x, dtype):
    """The bits of the number of `dtype` that is nearest to `x` among those no larger in magnitude."""
    nearest = x.to(dtype)
    bits = nearest.view(BITS[dtype.itemsize])
    return torch.where(nearest.to(torch.float64).abs() > x.abs(), bits - 1, bits)


def saturated(x, dtype):
    return x.clamp(torch.finfo(dtype).min, torch.finfo(dtype).max)


def bitcast(source, target):
    """The probe of the bits of a `source` as a `target`."""
    source_dtype, dtype = getattr(torch, source), getattr(torch, target)

    def inputs(draw):
        if not dtype.is_floating_point:
            return (draw.normal(BLOCK),)
        one = int(torch.ones(1).to(dtype).view(BITS[dtype.itemsize]).item())
        return (draw.integers(BLOCK, low=one // 2, high=one),)  # the bits of numbers up to 1

    def reference(x):
        bits = x.to(source_dtype).view(dtype)
        return bits.to(torch.float64) if dtype.is_floating_point else bits

    return cast(
        bitcast_kernel,
        reference,
        name=f"cast.bitcast.{source}.{target}",
        inputs=inputs,
        out=empty(BLOCK, dtype=dtype),
        dtypes=(source,),
    )


BITCASTS = (
    ("float32", "int32"),
    ("int32", "float32"),
    ("float16", "int16"),
    ("int16", "bfloat16"),
    ("bfloat16", "uint16"),
    ("float64", "int64"),
    ("int64", "float64"),
    ("int32", "uint32"),
    ("float8_e4m3fn", "int8"),
    ("uint8", "float8_e5m2"),
)

CASES = [
    *(cast_to(d, converted, name=f"cast.{d}", inputs=inputs_for(d), dtypes=[s for s in ALL if s != d]) for d in ALL),
    *(
        cast_to(
            d, lambda x, dtype: x, name=f"cast.special.{d}", seen_as_bits=False,
            inputs=lambda draw: (draw.special(BLOCK),),
            dtypes=(("float64",) if d == "float32" else ("float32",)),
        )
        for d in FLOATS
    ),
    *(
        cast_to(d, reference, name=f"cast.{rounding}.{d}", rounding=rounding, dtypes=("float32",))
        for rounding, reference in (("rtne", converted), ("rtz", towards_zero))
        for d in ("float16", "bfloat16", "float8_e4m3fn", "float8_e5m2")
    ),
    *(
        cast_to(
            d, saturated, name=f"cast.saturate.{d}", seen_as_bits=False, dtypes=("float32",),
            inputs=lambda draw: (draw.normal(BLOCK, scale=1e5),),
        )
        for d in FLOAT8
    ),
    *(bitcast(source, target) for source, target in BITCASTS),
]  # fmt: skip
