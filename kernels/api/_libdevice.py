"""The kernel of every libdevice probe, and its two factories."""

from fractions import Fraction

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice

from portability.kernels.api import _rounding
from portability.kernels.api._probe import BLOCK, between, empty, like, probe

FLOATS = ("float32", "float64")
SINGLE, DOUBLE = ("float32",), ("float64",)


@triton.jit
def libdevice_kernel(
    x_ptr, y_ptr, z_ptr, w_ptr, out_ptr, NAME: tl.constexpr, PREDICATE: tl.constexpr, BLOCK: tl.constexpr
):
    """out = libdevice.NAME(x, …), or whether that is not 0."""
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    if y_ptr is None:
        value = getattr(libdevice, NAME)(x)
    elif z_ptr is None:
        value = getattr(libdevice, NAME)(x, tl.load(y_ptr + offsets))
    elif w_ptr is None:
        value = getattr(libdevice, NAME)(x, tl.load(y_ptr + offsets), tl.load(z_ptr + offsets))
    else:
        y, z, w = tl.load(y_ptr + offsets), tl.load(z_ptr + offsets), tl.load(w_ptr + offsets)
        value = getattr(libdevice, NAME)(x, y, z, w)
    tl.store(out_ptr + offsets, value != 0 if PREDICATE else value)


def function(symbol, reference, inputs, *, count=1, dtypes=FLOATS, ulp=0.0, predicate=False, **more):
    """The probe of a function of `count` arguments. Its chain is the reference rounded once: torch has few of them."""
    return probe(
        f"libdevice.{symbol}", libdevice_kernel, reference, group="libdevice", inputs=inputs, dtypes=dtypes,
        arguments=lambda *t: (*t[:count], *[None] * (4 - count), t[-1]),
        chain=lambda *tensors: reference(*(t.double() if t.is_floating_point() else t for t in tensors)),
        relative=ulp / 4,  # the tolerance is 8 units of roundoff, which are 4 units in the last place
        NAME=symbol, PREDICATE=predicate, BLOCK=BLOCK, **more,
    )  # fmt: skip


def given(*inputs):
    """The reference of a function whose exact result is the last of its inputs."""
    return inputs[-1]


def correct(name, exact, mode, *, count=1, low=0.25, high=4.0, dtypes=FLOATS, out_dtype=None):
    """The probe of a function that is rounded correctly; `exact` tells its result from fractions."""

    def inputs(draw):
        tensors = between(low, high, count)(draw)
        dtype = out_dtype or draw.dtype
        columns = zip(*(t.tolist() for t in tensors), strict=True)
        results = [_rounding.rounded(*exact(*map(Fraction, column)), dtype, mode) for column in columns]
        return (*tensors, torch.tensor(results, dtype=dtype))

    return function(
        name, given, inputs, count=count, dtypes=dtypes, out=empty(BLOCK, dtype=out_dtype) if out_dtype else like
    )


def halves(low):
    """Numbers in [low, 1000), every fourth halfway between two integers."""

    def draw(d):
        x = d.uniform(BLOCK, low=low, high=1000.0)
        x[::4] = x[::4].trunc() + (0.5 if low == 0 else -0.5)
        return (x,)

    return draw
