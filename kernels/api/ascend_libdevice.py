"""libdevice as triton-ascend has it: in a module of its own, of which `triton.language.extra.libdevice` knows nothing.

Elsewhere each name is refused as missing. The functions of libdevice under their common name are in `libdevice.py`.
"""

import importlib
from types import ModuleType

import torch
import triton
import triton.language as tl

from portability.kernels.api._probe import BLOCK, between, probe

# Where its versions keep them.
HOMES = ("triton.language.extra.cann.libdevice", "triton.language.extra.ascend.libdevice")


def found():
    """The module that the installed Triton has, or one without a function."""
    for home in HOMES:
        try:
            return importlib.import_module(home)
        except ImportError:
            continue  # of another version, or of another vendor
    return ModuleType("ascend.libdevice")


ascend = found()


@triton.jit
def function_kernel(x_ptr, y_ptr, out_ptr, NAME: tl.constexpr, PREDICATE: tl.constexpr, BLOCK: tl.constexpr):
    """out = NAME(x) or NAME(x, y), or whether that is not 0."""
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    value = getattr(ascend, NAME)(x) if y_ptr is None else getattr(ascend, NAME)(x, tl.load(y_ptr + offsets))
    if PREDICATE:
        tl.store(out_ptr + offsets, tl.where(value != 0, 1.0, 0.0))
    else:
        tl.store(out_ptr + offsets, value)


def function(name, reference, low=-4.0, high=4.0, count=1, predicate=False):
    """The probe of a function of `count` arguments in [low, high), within a few units of its result."""
    return probe(
        f"ascend.libdevice.{name}", function_kernel, reference, group="ascend", inputs=between(low, high, count),
        absent=2 - count, dtypes=("float32",), relative=4.0, absolute=1.0, NAME=name, PREDICATE=predicate, BLOCK=BLOCK,
    )  # fmt: skip


CASES = [
    function("acos", torch.acos, -0.9, 0.9),
    function("acosh", torch.acosh, 1.1, 9.0),
    function("asin", torch.asin, -0.9, 0.9),
    function("asinh", torch.asinh),
    function("atan", torch.atan),
    function("atanh", torch.atanh, -0.9, 0.9),
    function("cosh", torch.cosh),
    function("cyl_bessel_i0", torch.special.i0),
    function("erfinv", torch.erfinv, -0.9, 0.9),
    function("expm1", torch.expm1),
    function("ilogb", lambda x: torch.floor(torch.log2(x)), 0.3, 9.0),
    function("lgamma", torch.lgamma, 0.5, 9.0),
    function("log10", torch.log10, 0.25, 9.0),
    function("log1p", torch.log1p, -0.5, 9.0),
    function("nearbyint", torch.round, -100.0, 100.0),
    function("round", torch.round, -100.0, 100.0),
    function("sinh", torch.sinh),
    function("tan", torch.tan, -1.0, 1.0),
    function("tanh", torch.tanh),
    function("trunc", torch.trunc, -100.0, 100.0),
    function("isinf", lambda x: torch.isinf(x).to(x.dtype), predicate=True),
    function("isnan", lambda x: torch.isnan(x).to(x.dtype), predicate=True),
    function("signbit", lambda x: torch.signbit(x).to(x.dtype), predicate=True),
    function("atan2", torch.atan2, count=2),
    function("copysign", torch.copysign, count=2),
    function("div_rz", torch.div, 0.5, 4.0, count=2),
    function("fmod", torch.fmod, 0.5, 4.0, count=2),
    function("hypot", torch.hypot, count=2),
    function("ldexp", lambda x, y: x * torch.exp2(y), count=2),
    function("nextafter", lambda x, y: x, count=2),
    function("pow", torch.pow, 0.5, 4.0, count=2),
]
