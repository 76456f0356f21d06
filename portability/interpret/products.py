"""Matrix products, gathers and histograms: the operations that mix lanes."""

from __future__ import annotations

from typing import Any

import numpy as np
import triton.language as tl
from numpy.typing import NDArray

from portability.interpret import checks
from portability.interpret.access import Access, poison
from portability.interpret.elementwise import Elementwise, numbers
from portability.interpret.internals import TensorHandle
from portability.interpret.targets import Targets
from portability.interpret.undefined import KEY, Undefined
from portability.interpret.values import NARROW

Handle = Any  # a TensorHandle
Array = NDArray[Any]

E2M1 = np.array([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0], dtype=np.float32)


class Products(Elementwise):
    """`tl.dot`, `tl.dot_scaled`, `tl.gather` and `tl.histogram`."""

    access: Access
    targets: Targets

    def create_dot(self, a: Handle, b: Handle, d: Handle, input_precision: Any, max_num_imprecise_acc: int) -> Handle:
        """a·b + d, accumulated in float32 (float64 and int32 for their own), rounded once to d's type."""
        self._dot_differs(a, b, input_precision)
        kind = d.data.dtype if d.data.dtype.kind != "f" or d.data.dtype == np.float64 else np.dtype(np.float32)
        product = np.matmul(numbers(a).astype(kind), numbers(b).astype(kind))
        out = TensorHandle((product + d.data).astype(d.data.dtype), d.dtype.scalar)
        return _mixed(out, a, b, d) if a.attr or b.attr or d.attr else out

    def _dot_differs(self, a: Handle, b: Handle, input_precision: Any) -> None:
        rows, depth = a.data.shape[-2:]
        columns = b.data.shape[-1]
        if self.report.warns("dot-minimum"):
            for least, targets in self.targets.dot_minimum(a.dtype, b.dtype).items():
                if (rows, columns, depth) != tuple(max(p) for p in zip((rows, columns, depth), least, strict=True)):
                    shapes = f"{rows}×{depth} and {depth}×{columns} {a.dtype.name}"
                    message = f"dot of {shapes}: M, N and K of at least {least} are needed"
                    self.report.warn("dot-minimum", message, targets)
        if a.dtype.name == "fp32" and input_precision.name != "IEEE":
            self._precision_differs(input_precision.name)

    def _precision_differs(self, precision: str) -> None:
        """TF32 is also what no precision at all means, so that a target without it takes another, silently."""
        if precision == "TF32":
            rounds = self.targets.with_precision("tf32")
            self.report.warn(
                "dot-precision",
                "float32 dot: these targets may round its inputs to TF32, the others and the interpreter do not",
                rounds,
            )
            return
        refuses = self.targets.without_precision(precision.lower())
        if refuses:
            self.report.warn(
                "dot-precision-name", f"no input_precision {precision.lower()!r} on these targets", refuses
            )

    def create_dot_scaled(
        self, lhs: Handle, lhs_scale: Handle | None, lhs_format: Any, rhs: Handle, rhs_scale: Handle | None,
        rhs_format: Any, fast_math: bool, lhs_k_pack: bool, rhs_k_pack: bool, acc: Handle,
    ) -> Handle:  # fmt: skip
        """Both operands times their scales, multiplied and added to acc in float32.

        OCP Microscaling Formats 1.0; a scale belongs to a group of consecutive elements along K.
        """
        left = _scaled(_elements(lhs, lhs_format, -1 if lhs_k_pack else -2), lhs_scale)
        right = np.swapaxes(_elements(rhs, rhs_format, -2 if rhs_k_pack else -1), -1, -2)
        product = np.matmul(left, np.swapaxes(_scaled(right, rhs_scale), -1, -2))
        out = TensorHandle((product + acc.data).astype(np.float32), tl.float32)
        return _mixed(out, lhs, rhs, acc)

    def create_gather(self, src: Handle, indices: Handle, axis: int) -> Handle:
        """Take along `axis` the lane that each index names; one that names none gives poison."""
        size = src.data.shape[axis]
        stray = checks.some((indices.data < 0) | (indices.data >= size))
        at = indices.data if stray is None else np.where(stray, 0, indices.data)
        values = np.take_along_axis(src.data, at, axis=axis)
        lanes = np.take_along_axis(src.attr[KEY].lanes, at, axis=axis) if KEY in src.attr else None
        place = src.attr[KEY].place if KEY in src.attr else self.report.place()
        if stray is not None:
            worst = indices.data[stray].reshape(-1)[0]
            self.warn("gather-index", stray, f"index {worst} of a gather from {size} lanes names none", indices)
            filling = poison(src.dtype.scalar.name, values.dtype, values.shape, self.access.poison)
            values = np.where(stray, filling, values)
            lanes = stray if lanes is None else lanes | stray
        out = TensorHandle(values, src.dtype.scalar)
        if lanes is not None and lanes.any():
            out.attr[KEY] = Undefined(lanes, place)
        return out

    def create_histogram(self, data: Handle, bins: int, mask: Handle | None) -> Handle:
        """Counts of the values 0 to bins - 1 as int32, without masked lanes.

        Any other value is counted by its low bits, as compilers do that look at these alone.
        """
        counted = np.ones(data.data.shape, dtype=bool) if mask is None else mask.data
        stray = checks.some(counted & ((data.data < 0) | (data.data >= bins)))
        if stray is not None:
            worst = data.data[stray].reshape(-1)[0]
            message = (
                f"value {worst} of a histogram of {bins} bins is in none: counted by its low bits, or past the end"
            )
            self.warn("histogram-range", stray, message, data)
        binned = data.data[counted].astype(np.int64) & (bins - 1)
        counts = np.bincount(binned, minlength=bins).astype(np.int32)
        out = TensorHandle(counts, tl.int32)
        if KEY in data.attr and np.any(data.attr[KEY].lanes & (True if mask is None else mask.data)):
            out.attr[KEY] = Undefined(np.ones(out.data.shape, dtype=bool), data.attr[KEY].place)
        return out


def _mixed(out: Handle, a: Handle, b: Handle, d: Handle) -> Handle:
    """Mark the rows and columns of a product that an undefined lane of an operand enters."""
    lanes, place = np.zeros(out.data.shape, dtype=bool), None
    for handle, axis in ((a, -1), (b, -2), (d, None)):
        if KEY in handle.attr:
            undefined = handle.attr[KEY]
            lanes |= undefined.lanes if axis is None else np.any(undefined.lanes, axis=axis, keepdims=True)
            place = undefined.place
    if place is not None and lanes.any():
        out.attr[KEY] = Undefined(lanes, place)
    return out


def _elements(value: Handle, form: Any, axis: int) -> Array:
    """Return float32 values of an operand; `axis` is the one along which a byte holds two E2M1."""
    if form.name != "E2M1":
        return numbers(value).astype(np.float32)
    packed = np.moveaxis(value.data.view(np.uint8), axis, -1)
    codes = np.stack((packed & 0xF, packed >> 4), axis=-1).reshape((*packed.shape[:-1], -1))  # the low half first
    values = np.where(codes & 8, -E2M1[codes & 7], E2M1[codes & 7])
    return np.moveaxis(values, -1, axis)


def _scaled(values: Array, scale: Handle | None) -> Array:
    """Return [.., rows, K] values times their scales, [.., rows, K / group].

    Bytes are E8M0: an exponent with bias 127, of which 255 is NaN; float8 scales are their values.
    """
    if scale is None:
        return values
    if scale.dtype.scalar.name in NARROW:
        factor = numbers(scale)
    else:
        exponent = scale.data.view(np.uint8).astype(np.int32)
        factor = np.where(exponent == 255, np.nan, np.ldexp(1.0, exponent - 127)).astype(np.float32)
    return np.asarray(values * np.repeat(factor, values.shape[-1] // factor.shape[-1], axis=-1))
