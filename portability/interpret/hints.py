"""What a kernel promises the compiler about a tensor, held against the values: a false promise gives wrong code.

`tl.multiple_of`, `tl.max_contiguous` and `tl.max_constancy` mean what Triton's axis analysis takes them for
(`AxisInfo.h`): along each axis, values fall into runs of consecutive numbers, and the first of a run is the multiple.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import triton.language as tl
from numpy.typing import NDArray

from portability.interpret.blocks import plain
from portability.interpret.undefined import lanes_of

Array = NDArray[Any]
Warn = Callable[..., None]  # Elementwise.warn


class Hints:
    """The three builtins; each returns its argument. `warn` takes code, lanes, message and the tensor's handle."""

    def __init__(self, warn: Warn) -> None:
        self._warn = warn

    def multiple_of(self, input: Any, values: Any, **_: Any) -> Any:
        """The first of each run along each axis is a multiple of the axis's value; of the address for pointers."""
        return self._check(input, values, "multiple-of", _not_multiple)

    def max_contiguous(self, input: Any, values: Any, **_: Any) -> Any:
        """Along each axis, each aligned group of the axis's value is a run of consecutive numbers."""
        return self._check(input, values, "max-contiguous", _not_stepping)

    def max_constancy(self, input: Any, values: Any, **_: Any) -> Any:
        """Along each axis, each aligned group of the axis's value is one number."""
        return self._check(input, values, "max-constancy", lambda lines, size, _: _not_stepping(lines, size, 0))

    def _check(self, input: Any, values: Any, name: str, broken: Callable[[Array, int, int], Array]) -> Any:
        if not isinstance(input, tl.tensor):
            return input  # a loop's variable or a constant
        data = input.handle.data
        sizes = [int(plain(v)) for v in (values if isinstance(values, (list, tuple)) else [values])]
        if len(sizes) != max(1, len(input.shape)):
            raise ValueError(
                f"{name.replace('-', '_')}: {len(sizes)} values for a tensor of {len(input.shape)} dimensions"
            )
        step = max(1, input.dtype.element_ty.primitive_bitwidth // 8) if input.dtype.is_ptr() else 1
        for axis, size in enumerate(sizes):
            lanes = np.moveaxis(broken(np.moveaxis(data, axis, -1), size, step), -1, axis)
            if lanes.any():
                self._warn(
                    f"false-{name}",
                    _known(lanes, input.handle),
                    f"{name.replace('-', '_')} of {size} is not so",
                    input.handle,
                )
        return input


def _known(lanes: Array, handle: Any) -> Array:
    undefined = lanes_of(handle)
    return lanes if undefined is None else lanes & ~undefined


def _not_multiple(lines: Array, size: int, step: int) -> Array:
    first = np.ones(lines.shape, dtype=bool)
    first[..., 1:] = lines[..., 1:] - lines[..., :-1] != np.asarray(step).astype(lines.dtype)
    return np.asarray(first & (lines % np.asarray(size).astype(lines.dtype) != 0))


def _not_stepping(lines: Array, size: int, step: int) -> Array:
    size = min(size, lines.shape[-1])
    groups = lines.reshape((*lines.shape[:-1], -1, size))
    wanted = groups[..., :1] + (np.arange(size) * step).astype(lines.dtype)
    return np.asarray((groups != wanted).reshape(lines.shape))
