"""Reductions: `tl.reduce`, and with it `tl.sum`, `tl.max`, `tl.argmax` and the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import triton.language as tl
from numpy.typing import NDArray

from portability.interpret import checks
from portability.interpret.blocks import Tensors, as_tuple, plain, reshaped, slices, taken, tensor_of
from portability.interpret.builder import CheckedBuilder
from portability.interpret.elementwise import PASSING, numbers
from portability.interpret.undefined import moved

Array = NDArray[Any]
Combine = Callable[..., Any]


class Reducer:
    """`function` gives the Python function of a JITFunction."""

    def __init__(self, builder: CheckedBuilder, semantic: Any, function: Callable[[Any], Combine]) -> None:
        self.builder = builder
        self.semantic = semantic
        self.function = function

    def reduce(self, input: Any, axis: Any, combine_fn: Any, keep_dims: Any = False, **_: Any) -> Any:
        """Combine all elements along `axis`, or all elements where it is None."""
        if not isinstance(input, tuple):
            return self.reduce((input,), axis, combine_fn, keep_dims)[0]
        axis, shape = plain(axis), input[0].handle.data.shape
        if axis is None:
            results = self._along(tuple(reshaped(t, (-1,)) for t in input), 0, combine_fn)
            kept = (1,) * len(shape)
        else:
            axis %= len(shape)
            results = self._along(input, axis, combine_fn)
            kept = (*shape[:axis], 1, *shape[axis + 1 :])
        return tuple(reshaped(r, kept) for r in results) if plain(keep_dims) else tuple(results)

    def _along(self, input: Tensors, axis: int, combine_fn: Any) -> Sequence[Any]:
        standard, first = tl.standard, input[0]
        results: Sequence[Any]
        if combine_fn is standard._sum_combine:
            results = [self._combined(first, lambda x: np.sum(x, axis=axis, dtype=x.dtype))]
        elif combine_fn is standard._elementwise_max:
            results = [self._extreme(first, axis, np.fmax)]
        elif combine_fn is standard._elementwise_min:
            results = [self._extreme(first, axis, np.fmin)]
        elif combine_fn in (standard._argmax_combine_tie_break_left, standard._argmax_combine_tie_break_fast):
            results = self._argument(
                input, axis, np.argmax, -np.inf, combine_fn is standard._argmax_combine_tie_break_left
            )
        elif combine_fn in (standard._argmin_combine_tie_break_left, standard._argmin_combine_tie_break_fast):
            results = self._argument(
                input, axis, np.argmin, np.inf, combine_fn is standard._argmin_combine_tie_break_left
            )
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

    def _extreme(self, tensor: Any, axis: int, extreme: np.ufunc) -> Any:
        """The extreme of what is not NaN."""
        self._nan(tensor)
        passing = self.builder.passes_nan or not tensor.dtype.is_floating()
        return self._combined(tensor, lambda x: (PASSING[extreme] if passing else extreme).reduce(x, axis=axis))

    def _argument(
        self, input: Tensors, axis: int, search: Callable[..., Any], never: float, leftmost: bool
    ) -> list[Any]:
        """The extreme value and its index: the leftmost of equals, and a NaN only where nothing else is."""
        self._nan(input[0])
        values = numbers(input[0].handle)
        drops = values.dtype.kind == "f" and not self.builder.passes_nan  # numpy's own searches find a NaN first
        judged = np.where(np.isnan(values), never, values) if drops else values
        where = np.expand_dims(search(judged, axis=axis), axis)
        if not leftmost:
            self._ties(input[0], judged == np.take_along_axis(judged, where, axis=axis), axis)
        return [tensor_of(np.take_along_axis(t.handle.data, where, axis=axis).squeeze(axis), t.dtype) for t in input]

    def _ties(self, tensor: Any, extreme: Array, axis: int) -> None:
        """Warn where several lanes hold the extreme, and the kernel does not say whose index is wanted."""
        lanes = checks.some(extreme & (extreme.sum(axis=axis, keepdims=True) > 1))
        message = "several lanes hold the extreme and tie_break_left is False: targets answer with the index of any"
        self.builder.warn("reduce-order", lanes, message, tensor.handle)

    def _nan(self, tensor: Any) -> None:
        lanes = checks.nan(numbers(tensor.handle))
        message = "NaN in a reduction to an extreme, which targets drop or pass on"
        self.builder.warn("nan-minmax", lanes, message, tensor.handle)

    def _folded(self, input: Tensors, axis: int, combine_fn: Any) -> list[Any]:
        """Any other function, from left to right, on all columns at once."""
        combine = self.function(combine_fn)
        total = slices(input, axis, 0)
        for i in range(1, input[0].handle.data.shape[axis]):
            total = as_tuple(combine(*total, *slices(input, axis, i)))
        results = self.cast_as(total, input)
        for swapped in (False, True):
            if self.builder.report.warns("reduce-order"):
                self.order_matters(results, self._halved(input, axis, combine, swapped), input)
        return results

    def _halved(self, input: Tensors, axis: int, combine: Combine, swapped: bool) -> list[Any]:
        """The same by combining the halves of what is left, as the threads of a warp do.

        `swapped` puts the upper half first, as for every second thread that exchanges its value with another one.
        """
        size = input[0].handle.data.shape[axis]
        while size > 1:
            size //= 2
            halves = [[taken(t, axis, slice(at, at + size)) for t in input] for at in (0, size)]
            first, second = reversed(halves) if swapped else halves
            input = tuple(self.cast_as(as_tuple(combine(*first, *second)), input))
        return list(slices(input, axis, 0))

    def order_matters(self, left: Sequence[Any], other: Sequence[Any], input: Tensors) -> None:
        """Warn where two orders of combining `input` differ by more than rounding."""
        for one, two, source in zip(left, other, input, strict=True):
            a, b, values = (numbers(t.handle).astype(np.float64) for t in (one, two, source))
            size = np.abs(np.where(np.isfinite(values), values, 0)).max(initial=0.0)
            slack = values.size * _roundoff(one.dtype) * np.maximum(size, np.maximum(np.abs(a), np.abs(b)))
            lanes = checks.some((np.abs(a - b) > slack) & ~np.isnan(a) & ~np.isnan(b))
            if lanes is not None:
                example = f"{a[lanes][0]:g} in one order and {b[lanes][0]:g} in another"
                message = f"the function of a reduction or scan gives {example}: targets combine in orders of their own"
                self.builder.warn("reduce-order", lanes, message, one.handle)

    def cast_as(self, values: Sequence[Any], input: Tensors) -> list[Any]:
        """Return what a function gave as tensors of the input's types."""
        pairs = zip(values, input, strict=True)
        return [self.semantic.cast(self.semantic.to_tensor(value), source.dtype) for value, source in pairs]


def _roundoff(dtype: Any) -> float:
    """What a few operations on numbers of about 1 may be off by; 0 for integers."""
    return float(8 * 2.0 ** -(dtype.fp_mantissa_width + 1)) if dtype.is_floating() else 0.0
