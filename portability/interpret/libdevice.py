"""libdevice on the CPU: what a symbol of NVIDIA's or AMD's device library computes, by numpy, math and torch.

Which symbol a name means for which types is taken from Triton's own table of the CUDA library, which has the most
names (197 of 198); the vendors' symbols are then one name: `__nv_cbrtf` and `__ocml_cbrt_f32` are both `cbrt`.
Results are rounded once from float64 where float32 is asked for: a device's own may differ by a few units in the last
place, as its tables of accuracy say.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from portability.interpret.report import Unsupported

Array = NDArray[Any]


def emulated(name: str, bind: Callable[[Any], Callable[..., Any]]) -> Callable[..., Any]:
    """Return what `libdevice.name` is in a kernel: dispatched by type as for CUDA, computed by `compute`.

    `bind` binds a builtin to the front end.
    """
    declared = getattr(importlib.import_module("triton.language.extra.cuda.libdevice"), name, None)
    if declared is not None:
        return bind(declared)

    def missing(*args: Any, **_: Any) -> Any:
        raise Unsupported(f"libdevice.{name} is not computed: no library declares its types")

    return missing


def compute(symbol: str, args: list[Array]) -> Array:
    """Return the values of a library symbol on arrays. Raises `Unsupported` naming the symbol where it is not known."""
    name, suffix = split(symbol)
    function = FUNCTIONS.get(name)
    if function is None:
        raise Unsupported(f"{symbol} is not computed by the interpreter")
    if suffix == "f":
        args = [a.astype(np.float64) if a.dtype == np.float32 else a for a in args]
    return np.asarray(function(*args))


def split(symbol: str) -> tuple[str, str]:
    """Return the function's name and "f" where it is the float32 variant: `__nv_cbrtf` is ("cbrt", "f")."""
    nvidia = re.fullmatch(r"__nv_(\w+)", symbol)
    if nvidia:
        name = nvidia[1]
        if name in FUNCTIONS:
            return name, ""
        return (name[:-1], "f") if name.endswith("f") else (name, "")
    amd = re.fullmatch(r"__ocml_(\w+?)_(f16|f32|f64)", symbol)
    return (amd[1], "f" if amd[2] != "f64" else "") if amd else (symbol, "")


def _torch(function: Callable[..., torch.Tensor]) -> Callable[..., Array]:
    return lambda *args: function(*(torch.from_numpy(np.ascontiguousarray(a)) for a in args)).numpy()


FUNCTIONS: dict[str, Callable[..., Array]] = {"cbrt": np.cbrt, "erf": _torch(torch.special.erf)}
