"""Scans and element-wise maps: `tl.associative_scan` and `tl.map_elementwise`."""

from __future__ import annotations

from typing import Any

import numpy as np
import triton.language as tl

from portability.interpret.blocks import Tensors, as_tuple, flipped, plain, slices, tensor_of
from portability.interpret.reduce import Array, Combine, Reducer
from portability.interpret.undefined import moved
from portability.interpret.values import NARROW


class Scanner(Reducer):
    """Adds scans and maps to the reductions."""

    def scan(self, input: Any, axis: Any, combine_fn: Any, reverse: Any = False, **_: Any) -> Any:
        """What the elements up to each one along `axis` combine to."""
        if not isinstance(input, tuple):
            return self.scan((input,), axis, combine_fn, reverse)[0]
        axis, reverse = plain(axis) % len(input[0].shape), plain(reverse)
        if reverse:
            input = tuple(flipped(t, axis) for t in input)
        results = self._scanned(input, axis, combine_fn)
        for result, source in zip(results, input, strict=True):
            moved(result.handle, source.handle, lambda lanes: np.logical_or.accumulate(lanes, axis=axis))
        return tuple(flipped(t, axis) for t in results) if reverse else tuple(results)

    def _scanned(self, input: Tensors, axis: int, combine_fn: Any) -> list[Any]:
        first = input[0]
        whole = {id(tl.standard._sum_combine): np.add, id(tl.standard._prod_combine): np.multiply}.get(id(combine_fn))
        if whole is not None and first.dtype.name not in NARROW and first.dtype.name != "int1":
            data = first.handle.data
            return [tensor_of(whole.accumulate(data, axis=axis, dtype=data.dtype), first.dtype)]
        combine = self.function(combine_fn)
        self._associates(input, axis, combine)
        steps = [slices(input, axis, 0)]
        for i in range(1, first.handle.data.shape[axis]):
            steps.append(as_tuple(combine(*steps[-1], *slices(input, axis, i))))
        columns = zip(*(self._columns(step, input, axis) for step in steps), strict=True)
        return [tensor_of(np.stack(c, axis=axis), t.dtype) for c, t in zip(columns, input, strict=True)]

    def _columns(self, step: Tensors, input: Tensors, axis: int) -> list[Array]:
        shape = input[0].handle.data.shape
        return [t.handle.data.reshape((*shape[:axis], *shape[axis + 1 :])) for t in self.cast_as(step, input)]

    def _associates(self, input: Tensors, axis: int, combine: Combine) -> None:
        """A scan keeps the order of its elements, and groups them as the target likes."""
        size = input[0].handle.data.shape[axis]
        if size >= 3 and self.builder.report.warns("reduce-order"):
            a, b, c = (slices(input, axis, i) for i in (0, size // 2, size - 1))
            left = as_tuple(combine(*as_tuple(combine(*a, *b)), *c))
            right = as_tuple(combine(*a, *as_tuple(combine(*b, *c))))
            self.order_matters(self.cast_as(left, input), self.cast_as(right, input), input)

    def map(self, scalar_fn: Any, *args: Any, pack: Any = 1, **_: Any) -> Any:
        """Call `scalar_fn` for every `pack` elements of the arguments, which are broadcast to one shape.

        It is given `pack` scalars of each argument, and gives one tensor, or a tuple of `pack` for each result.
        """
        function, pack = self.function(scalar_fn), plain(pack)
        shape = np.broadcast_shapes(*(t.handle.data.shape for t in args if t.type.is_block()))
        flat = [(np.broadcast_to(t.handle.data, shape).reshape(-1), t.dtype) for t in args]
        results = []
        for i in range(0, flat[0][0].size, pack):
            lanes = [tensor_of(data[i + j : i + j + 1].reshape(()), dtype) for data, dtype in flat for j in range(pack)]
            results.append(function(*lanes))
        calls = [[self.semantic.to_tensor(value) for value in as_tuple(result)] for result in results]
        outputs = []
        for k in range(0, len(calls[0]), pack):
            data = np.concatenate([call[k + j].handle.data for call in calls for j in range(pack)])
            outputs.append(tensor_of(data.reshape(shape), calls[0][k].dtype))
        return tuple(outputs) if isinstance(results[0], (tuple, tl.tuple)) else outputs[0]
