"""What targets may compute otherwise, one thing at a time: a run whose result is wrong then depends on it.

fused-product         a product that is added or subtracted is not rounded first: compilers for GPUs contract the two
                      to a fused multiply-add unless a launch says `enable_fp_fusion=False`; here it is rounded twice
flushed-exp2          a power of 2 below the normal range of float32 is 0, as NVIDIA's `ex2.approx.ftz` has it
approximate-quotient  a quotient of float32 is one unit in the last place too small, unless the divisor is a power of 2:
                      NVIDIA's `div.full` may be off by two; `tl.div_rn` is not
approximate-root      a square root of float32 is one unit in the last place too small, as NVIDIA's `sqrt.approx` and
                      AMD's `v_sqrt_f32` may have it; `tl.sqrt_rn` has not
"""

# ruff: noqa: D102 - these methods have the names, arguments and meaning of Triton's builder

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from portability.interpret.elementwise import Elementwise

Handle = Any  # a TensorHandle
Array = NDArray[Any]
Place = tuple[str, int]

FUSED, FLUSHED = "fused-product", "flushed-exp2"
QUOTIENT, ROOT = "approximate-quotient", "approximate-root"
PRODUCT = "product"  # of a handle's `attr`: the two factors
WORDS = {
    FUSED: "right where a product is rounded before it is added, and wrong where the two are fused",
    FLUSHED: "right where powers of 2 may be subnormal, and wrong where they are flushed to 0",
    QUOTIENT: "right where a quotient is rounded correctly, and wrong where it is off in the last place: see tl.div_rn",
    ROOT: "right where a root is rounded correctly, and wrong where it is off in the last place: see tl.sqrt_rn",
}
SMALLEST = float(np.finfo(np.float32).tiny)


class Variants(Elementwise):
    """Sums, products and powers, as a target may have them where `variant` says so.

    `changed` holds, by line, by what share of the larger result the variant changed one there at the most.
    """

    variant = ""
    fuses = True  # whether the launch leaves fusing to the compiler
    changed: dict[Place, float]

    def create_fmul(self, lhs: Handle, rhs: Handle) -> Handle:
        out = self.binary_op(lhs, rhs, np.multiply)
        if self.variant == FUSED and self.fuses and out.data.dtype == np.float32:
            out.attr[PRODUCT] = lhs, rhs
        return out

    def create_fadd(self, lhs: Handle, rhs: Handle) -> Handle:
        return self._sum(lhs, rhs, 1.0, np.add)

    def create_fsub(self, lhs: Handle, rhs: Handle) -> Handle:
        return self._sum(lhs, rhs, -1.0, np.subtract)

    def create_exp2(self, arg: Handle) -> Handle:
        out = self.unary_op(arg, np.exp2)
        if self.variant == FLUSHED and out.data.dtype == np.float32:
            out.data = self._noted(out.data, np.where(np.abs(out.data) < SMALLEST, np.float32(0), out.data))
        return out

    def create_fdiv(self, lhs: Handle, rhs: Handle) -> Handle:
        out = self.binary_op(lhs, rhs, np.divide)
        if self.variant == QUOTIENT and out.data.dtype == np.float32:
            exact = np.abs(np.frexp(rhs.data)[0]) == np.float32(0.5)
            out.data = self._noted(out.data, np.where(exact, out.data, _smaller(out.data)))
        return out

    create_approx_divf = create_fdiv

    def create_sqrt(self, arg: Handle) -> Handle:
        out = self.unary_op(arg, np.sqrt)
        if self.variant == ROOT and out.data.dtype == np.float32:
            out.data = self._noted(out.data, _smaller(out.data))
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
        worst = float(np.max(np.nan_to_num(share, nan=0.0, posinf=0.0), initial=0.0))
        if worst:
            place = self.report.place()
            self.changed[place] = max(worst, self.changed.get(place, 0.0))
        return varied


def _product(a: Handle, b: Handle) -> Array:
    """The product of two blocks of float32, exact in float64."""
    return np.asarray(a.data.astype(np.float64) * b.data.astype(np.float64))


def _smaller(values: Array) -> Array:
    """The next numbers toward 0; infinities stay."""
    return np.where(np.isfinite(values), np.nextafter(values, np.float32(0)), values)
