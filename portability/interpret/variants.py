"""What targets may compute otherwise, one thing at a time: a run whose result is wrong then depends on it.

fused-product         a product that is added or subtracted is not rounded first: compilers for GPUs contract the two
                      to a fused multiply-add unless a launch says `enable_fp_fusion=False`; here it is rounded twice
flushed-exp2          a power of 2 below the normal range of float32 is 0, as NVIDIA's `ex2.approx.ftz` has it, and
                      AMD's `v_exp_f32`, which Triton takes as it is (its back end says so of `exp2`)
flushed-root          the root of a subnormal float32 is that of 0, and its reciprocal infinite, as NVIDIA's
                      `sqrt.approx.ftz` and `rsqrt.approx.ftz` and AMD's `v_sqrt_f32` and `v_rsq_f32` have it
flushed-product       subnormal operands of a product in half precision are 0, as the matrix units of MI200 have it
approximate-quotient  a quotient of float32 is one unit in the last place too small, unless the divisor is a power of 2:
                      NVIDIA's `div.full` may be off by two; `tl.div_rn` is not
approximate-root      a square root of float32 is one unit in the last place too small, as NVIDIA's `sqrt.approx` and
                      AMD's `v_sqrt_f32` may have it; `tl.sqrt_rn` has not
"""

# ruff: noqa: D102 - these methods have the names, arguments and meaning of Triton's builder

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from portability.interpret.elementwise import numbers
from portability.interpret.products import Products

Handle = Any  # a TensorHandle
Array = NDArray[Any]
Place = tuple[str, int]

FUSED, FLUSHED = "fused-product", "flushed-exp2"
FLUSHED_ROOT, FLUSHED_PRODUCT = "flushed-root", "flushed-product"
QUOTIENT, ROOT = "approximate-quotient", "approximate-root"
PRODUCT = "product"  # of a handle's `attr`: the two factors
WORDS = {
    FUSED: "right where a product is rounded before it is added, and wrong where the two are fused",
    FLUSHED: "right where powers of 2 may be subnormal, and wrong where they are flushed to 0",
    FLUSHED_ROOT: "right where the root of a subnormal number is taken, and wrong where that of 0 is: see tl.sqrt_rn",
    FLUSHED_PRODUCT: "right where subnormal operands of a product count, and wrong where the matrix unit takes 0",
    QUOTIENT: "right where a quotient is rounded correctly, and wrong where it is off in the last place: see tl.div_rn",
    ROOT: "right where a root is rounded correctly, and wrong where it is off in the last place: see tl.sqrt_rn",
}
SMALLEST = float(np.finfo(np.float32).tiny)
HALVES = {"fp16": 2.0**-14, "bf16": SMALLEST}  # the smallest normal number


class Variants(Products):
    """Sums, products and powers, as a target may have them where `variant` says so.

    `changed` holds, by line, by what share of the larger result the variant changed one there at the most; `concerned`
    the variants that could have changed something, had they been asked for.
    """

    variant = ""
    concerned: set[str]
    fuses = True  # whether the launch leaves fusing to the compiler
    changed: dict[Place, float]

    def create_fmul(self, lhs: Handle, rhs: Handle) -> Handle:
        out = self.binary_op(lhs, rhs, np.multiply)
        if self._asks(FUSED, self.fuses and out.data.dtype == np.float32):
            out.attr[PRODUCT] = lhs, rhs
        return out

    def create_fadd(self, lhs: Handle, rhs: Handle) -> Handle:
        return self._sum(lhs, rhs, 1.0, np.add)

    def create_fsub(self, lhs: Handle, rhs: Handle) -> Handle:
        return self._sum(lhs, rhs, -1.0, np.subtract)

    def create_exp2(self, arg: Handle) -> Handle:
        out = self.unary_op(arg, np.exp2)
        if self._asks(FLUSHED, _subnormal(out.data)):
            out.data = self._noted(out.data, _flushed(out.data, SMALLEST))
        return out

    def create_fdiv(self, lhs: Handle, rhs: Handle) -> Handle:
        out = self.binary_op(lhs, rhs, np.divide)
        if self._asks(QUOTIENT, out.data.dtype == np.float32):
            exact = np.abs(np.frexp(rhs.data)[0]) == np.float32(0.5)
            out.data = self._noted(out.data, np.where(exact, out.data, _smaller(out.data)))
        return out

    create_approx_divf = create_fdiv

    def create_sqrt(self, arg: Handle) -> Handle:
        out = self.unary_op(arg, np.sqrt)
        if self._asks(ROOT, out.data.dtype == np.float32):
            out.data = self._noted(out.data, _smaller(out.data))
        return self._of_flushed(out, arg, np.sqrt)

    def create_rsqrt(self, arg: Handle) -> Handle:
        return self._of_flushed(super().create_rsqrt(arg), arg, lambda values: 1 / np.sqrt(values))

    def create_dot(self, a: Handle, b: Handle, d: Handle, input_precision: Any, max_num_imprecise_acc: int) -> Handle:
        out = super().create_dot(a, b, d, input_precision, max_num_imprecise_acc)
        name = a.dtype.scalar.name
        if name not in HALVES or b.dtype.scalar.name != name:
            return out
        factors = [numbers(h).astype(np.float32) for h in (a, b)]
        if self._asks(FLUSHED_PRODUCT, any(_subnormal(f, HALVES[name]) for f in factors)):
            factors = [_flushed(f, HALVES[name]) for f in factors]
            out.data = self._noted(out.data, (np.matmul(*factors) + d.data).astype(d.data.dtype))
        return out

    def _asks(self, variant: str, concerns: bool | np.bool_) -> bool:
        """Whether a variant is asked for where it concerns an operation; that it does so is kept."""
        if concerns:
            self.concerned.add(variant)
        return bool(concerns) and self.variant == variant

    def _of_flushed(self, out: Handle, arg: Handle, function: Callable[[Array], Array]) -> Handle:
        if self._asks(FLUSHED_ROOT, _subnormal(arg.data)):
            flushed = _flushed(arg.data, SMALLEST)
            out.data = self._noted(out.data, np.where(flushed == arg.data, out.data, function(flushed)))
        return out

    def _sum(self, lhs: Handle, rhs: Handle, sign: float, op: np.ufunc) -> Handle:
        out = self.binary_op(lhs, rhs, op)
        if self.variant == FUSED and (PRODUCT in lhs.attr or PRODUCT in rhs.attr):
            if PRODUCT in lhs.attr:
                a, b = lhs.attr[PRODUCT]
                exact = _product(a, b) + sign * rhs.data.astype(np.float64)
            else:
                a, b = rhs.attr[PRODUCT]
                exact = lhs.data.astype(np.float64) + sign * _product(a, b)
            out.data = self._noted(out.data, exact.astype(np.float32))
        return out

    def _noted(self, plain: Array, varied: Array) -> Array:
        """Return the varied values, and keep how much they differ at the kernel's current line."""
        with np.errstate(all="ignore"):
            share = np.abs(varied - plain) / np.maximum(np.abs(varied), np.abs(plain))
        differs = (varied != plain) & ~(np.isnan(varied) & np.isnan(plain))
        worst = float(np.max(np.where(np.isfinite(share), share, differs), initial=0.0))  # infinite or not: wholly
        if worst:
            place = self.report.place()
            self.changed[place] = max(worst, self.changed.get(place, 0.0))
        return varied


def _product(a: Handle, b: Handle) -> Array:
    """The product of two blocks of float32, exact in float64."""
    return np.asarray(a.data.astype(np.float64) * b.data.astype(np.float64))


def _subnormal(values: Array, smallest: float = SMALLEST) -> bool:
    """Whether some float32 values are below the smallest normal number, and not 0."""
    return bool(values.dtype == np.float32 and ((np.abs(values) < smallest) & (values != 0)).any())


def _flushed(values: Array, smallest: float) -> Array:
    """The values with 0 for what is below the smallest normal number."""
    return np.where(np.abs(values) < smallest, values.dtype.type(0), values)


def _smaller(values: Array) -> Array:
    """The next numbers toward 0; infinities stay."""
    return np.where(np.isfinite(values), np.nextafter(values, np.float32(0)), values)
