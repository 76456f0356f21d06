"""Tensors of the language made from arrays, and parts of them; undefined lanes go along."""

from __future__ import annotations

from typing import Any

import numpy as np
import triton.language as tl
from numpy.typing import NDArray

from portability.interpret.internals import TensorHandle
from portability.interpret.undefined import moved

Array = NDArray[Any]
Tensors = tuple[Any, ...]


def tensor_of(data: Array, dtype: Any) -> Any:
    """Return a tensor of `data`, whose elements are held as those of `dtype`; scalars are arrays of one element."""
    scalar = dtype.scalar
    if data.ndim == 0:
        return tl.tensor(TensorHandle(data.reshape(1), scalar), scalar)
    return tl.tensor(TensorHandle(np.ascontiguousarray(data), scalar), tl.block_type(scalar, list(data.shape)))


def reshaped(tensor: Any, shape: tuple[int, ...]) -> Any:
    """Return the elements in another shape."""
    out = tensor_of(tensor.handle.data.reshape(shape), tensor.dtype)
    moved(out.handle, tensor.handle, lambda lanes: lanes)
    return out


def flipped(tensor: Any, axis: int) -> Any:
    """Return the elements in the other order along `axis`."""
    out = tensor_of(np.flip(tensor.handle.data, axis=axis), tensor.dtype)
    moved(out.handle, tensor.handle, lambda lanes: np.flip(lanes, axis=axis))
    return out


def taken(tensor: Any, axis: int, part: slice | int) -> Any:
    """Return a part along `axis`; a single index drops the dimension."""
    index = (slice(None),) * axis + (part,)
    out = tensor_of(np.asarray(tensor.handle.data[index]), tensor.dtype)
    moved(out.handle, tensor.handle, lambda lanes: lanes[index])
    return out


def slices(input: Tensors, axis: int, i: int) -> Tensors:
    """Return the `i`-th elements along `axis` of each tensor."""
    return tuple(taken(t, axis, i) for t in input)


def as_tuple(value: Any) -> Tensors:
    """Return what a combining function gave as a tuple."""
    return tuple(value) if isinstance(value, (tuple, tl.tuple)) else (value,)


def plain(value: Any) -> Any:
    """Return a constant's value."""
    return value.value if isinstance(value, tl.constexpr) else value
