"""Reductions, scans and element-wise maps: the builtins that take a function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import triton.language as tl
from numpy.typing import NDArray

from portability.interpret.builder import CheckedBuilder, numbers
from portability.interpret.internals import TensorHandle
from portability.interpret.undefined import moved
from portability.interpret.values import NARROW

Array = NDArray[Any]
Tensors = tuple[Any, ...]


class Reducer:
    """`tl.reduce`, `tl.associative_scan` and `tl.map_elementwise`.

    `function` gives the Python function of a JITFunction.
    """

    def __init__(self, builder: CheckedBuilder, semantic: Any, function: Callable[[Any], Callable[..., Any]]) -> None:
        self.builder = builder
        self.semantic = semantic
        self.function = function

    # -------------------------------------------------------------------------------------------- reductions

    def reduce(self, input: Any, axis: Any, combine_fn: Any, keep_dims: Any = False, **_: Any) -> Any:
        """Combine all elements along `axis`, or all elements where it is None."""
        if not isinstance(input, tuple):
            return self.reduce((input,), axis, combine_fn, keep_dims)[0]
        axis, shape = _plain(axis), input[0].handle.data.shape
        if axis is None:
            results = self._along(tuple(map(_flattened, input)), 0, combine_fn)
            kept = (1,) * len(shape)
        else:
            axis %= len(shape)
            results = self._along(input, axis, combine_fn)
            kept = (*shape[:axis], 1, *shape[axis + 1 :])
        return tuple(_reshaped(r, kept) for r in results) if _plain(keep_dims) else tuple(results)

    def _along(self, input: Tensors, axis: int, combine_fn: Any) -> Sequence[Any]:
        standard, first = tl.standard, input[0]
        results: Sequence[Any]
        if combine_fn is standard._sum_combine:
            results = [self._combined(first, lambda x: np.sum(x, axis=axis, dtype=x.dtype))]
        elif combine_fn is standard._elementwise_max:
            results = [
                self._combined(first, lambda x: (np.fmax if x.dtype.kind == "f" else np.maximum).reduce(x, axis))
            ]
        elif combine_fn is standard._elementwise_min:
            results = [
                self._combined(first, lambda x: (np.fmin if x.dtype.kind == "f" else np.minimum).reduce(x, axis))
            ]
        elif combine_fn in (standard._argmax_combine_tie_break_left, standard._argmax_combine_tie_break_fast):
            results = _argument(input, axis, np.argmax, -np.inf)
        elif combine_fn in (standard._argmin_combine_tie_break_left, standard._argmin_combine_tie_break_fast):
            results = _argument(input, axis, np.argmin, np.inf)
        else:
            results = self._folded(input, axis, combine_fn)
        for result, source in zip(results, input, strict=True):
            moved(result.handle, source.handle, lambda lanes: np.any(lanes, axis=axis))
        return results

    def _combined(self, tensor: Any, reduction: Callable[[Array], Array]) -> Any:
        values = np.asarray(reduction(numbers(tensor.handle)))
        if tensor.dtype.is_floating():
            return tensor_of(self.builder.encode(values, tensor.dtype).data, tensor.dtype)
        return tensor_of(values, tensor.dtype)

    def _folded(self, input: Tensors, axis: int, combine_fn: Any) -> list[Any]:
        """Any other function, from left to right, on all columns at once."""
        combine = self.function(combine_fn)
        total = _slices(input, axis, 0)
        for i in range(1, input[0].handle.data.shape[axis]):
            total = _tuple(combine(*total, *_slices(input, axis, i)))
        return [self._cast(value, source.dtype) for value, source in zip(total, input, strict=True)]

    # ------------------------------------------------------------------------------------------------- scans

    def scan(self, input: Any, axis: Any, combine_fn: Any, reverse: Any = False, **_: Any) -> Any:
        """What the elements up to each one along `axis` combine to."""
        if not isinstance(input, tuple):
            return self.scan((input,), axis, combine_fn, reverse)[0]
        axis, reverse = _plain(axis) % len(input[0].shape), _plain(reverse)
        if reverse:
            input = tuple(_flipped(t, axis) for t in input)
        results = self._scanned(input, axis, combine_fn)
        for result, source in zip(results, input, strict=True):
            moved(result.handle, source.handle, lambda lanes: np.logical_or.accumulate(lanes, axis=axis))
        return tuple(_flipped(t, axis) for t in results) if reverse else tuple(results)

    def _scanned(self, input: Tensors, axis: int, combine_fn: Any) -> list[Any]:
        first = input[0]
        whole = {id(tl.standard._sum_combine): np.add, id(tl.standard._prod_combine): np.multiply}.get(id(combine_fn))
        if whole is not None and first.dtype.name not in NARROW and first.dtype.name != "int1":
            data = first.handle.data
            return [tensor_of(whole.accumulate(data, axis=axis, dtype=data.dtype), first.dtype)]
        combine = self.function(combine_fn)
        steps = [_slices(input, axis, 0)]
        for i in range(1, first.handle.data.shape[axis]):
            steps.append(_tuple(combine(*steps[-1], *_slices(input, axis, i))))
        return [
            tensor_of(np.stack([self._column(step[k], source, axis) for step in steps], axis=axis), source.dtype)
            for k, source in enumerate(input)
        ]

    def _column(self, value: Any, source: Any, axis: int) -> Array:
        shape = source.handle.data.shape
        data: Array = self._cast(value, source.dtype).handle.data
        return data.reshape((*shape[:axis], *shape[axis + 1 :]))

    # -------------------------------------------------------------------------------------------------- maps

    def map(self, scalar_fn: Any, *args: Any, pack: Any = 1, **_: Any) -> Any:
        """Call `scalar_fn` for every `pack` elements of the arguments, which are broadcast to one shape."""
        function, pack = self.function(scalar_fn), _plain(pack)
        shape = np.broadcast_shapes(*(t.handle.data.shape for t in args if t.type.is_block()))
        flat = [(np.broadcast_to(t.handle.data, shape).reshape(-1), t.dtype) for t in args]
        calls = []
        for i in range(0, flat[0][0].size, pack):
            lanes = [tensor_of(data[i + j : i + j + 1].reshape(()), dtype) for data, dtype in flat for j in range(pack)]
            calls.append([self.semantic.to_tensor(value) for value in _tuple(function(*lanes))])
        outputs = []
        for k in range(0, len(calls[0]), pack):
            data = np.concatenate([call[k + j].handle.data for call in calls for j in range(pack)])
            outputs.append(tensor_of(data.reshape(shape), calls[0][k].dtype))
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def _cast(self, value: Any, dtype: Any) -> Any:
        return self.semantic.cast(self.semantic.to_tensor(value), dtype)


def _argument(input: Tensors, axis: int, search: Callable[..., Any], never: float) -> list[Any]:
    """The extreme value and its index: the leftmost of equals, and a NaN only where nothing else is."""
    values = numbers(input[0].handle)
    judged = np.where(np.isnan(values), never, values) if values.dtype.kind == "f" else values
    where = np.expand_dims(search(judged, axis=axis), axis)
    return [tensor_of(np.take_along_axis(t.handle.data, where, axis=axis).squeeze(axis), t.dtype) for t in input]


def tensor_of(data: Array, dtype: Any) -> Any:
    """Return a tensor of `data`, whose elements are held as those of `dtype`; scalars are arrays of one element."""
    scalar = dtype.scalar
    if data.ndim == 0:
        return tl.tensor(TensorHandle(data.reshape(1), scalar), scalar)
    return tl.tensor(TensorHandle(np.ascontiguousarray(data), scalar), tl.block_type(scalar, list(data.shape)))


def _flattened(tensor: Any) -> Any:
    return _reshaped(tensor, (tensor.handle.data.size,))


def _reshaped(tensor: Any, shape: tuple[int, ...]) -> Any:
    out = tensor_of(tensor.handle.data.reshape(shape), tensor.dtype)
    moved(out.handle, tensor.handle, lambda lanes: lanes)
    return out


def _flipped(tensor: Any, axis: int) -> Any:
    out = tensor_of(np.flip(tensor.handle.data, axis=axis), tensor.dtype)
    moved(out.handle, tensor.handle, lambda lanes: np.flip(lanes, axis=axis))
    return out


def _slices(input: Tensors, axis: int, i: int) -> Tensors:
    """The `i`-th elements along `axis`."""
    return tuple(tensor_of(np.take(t.handle.data, i, axis=axis), t.dtype) for t in input)


def _tuple(value: Any) -> Tensors:
    return tuple(value) if isinstance(value, (tuple, tl.tuple)) else (value,)


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, tl.constexpr) else value
