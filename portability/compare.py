"""Distance to a float64 reference, and the tolerance that is derived for it.

An element may be off by at most

    2 · max|chain − reference| + C · u · Σ|terms|

where `chain` is the unfused torch computation at the cell's dtype on the CPU (so that the tolerance is equal for all
targets; the factor 2 is flash-attention's), u the unit roundoff of the precision that the kernel accumulates in, and
Σ|terms| the sum of the magnitudes that the element adds up. The second part covers another order of summation: a
sum of n terms in any order errs by at most about n · u · Σ|terms| and by some √n · u · Σ|terms| in practice (Higham,
Accuracy and Stability of Numerical Algorithms, section 4.2); blocked and pairwise orders stay below C = 8.
Integers and bool must be equal; NaN and infinities must agree position by position.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from portability.kernel import KernelCase
from portability.model import Accuracy

C = 8.0
# Unit roundoff: half the distance from 1 to the next number. Named precisions are those of the matrix units.
UNIT_ROUNDOFF = {
    "float64": 2.0**-53,
    "float32": 2.0**-24,
    "bf16x3": 2.0**-17,  # two bfloat16 hold 16 bits
    "tf32x3": 2.0**-22,
    "tf32": 2.0**-11,
    "float16": 2.0**-11,
    "bfloat16": 2.0**-8,
    # Products of float8 are added by the matrix units of Hopper with about 14 bits, and what is below is cut off
    # (DeepSeek-V3 Technical Report, section 3.3.2).
    "float8 products": 2.0**-13,
}
# torch has no arithmetic in these: the chain is computed in float32 and rounded once.
ROUNDED_ONCE = {torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz}


@dataclass(frozen=True)
class Expected:
    """What one output should be, in float64 (exact dtypes in their own), and what it may be off by."""

    values: torch.Tensor
    tolerance: torch.Tensor | None  # None: must be equal


def outputs_of(made: Any) -> tuple[torch.Tensor, ...]:
    """Return what an operator or reference returned as a tuple of tensors."""
    tensors = tuple(made) if isinstance(made, (tuple, list)) else (made,)
    for t in tensors:
        if not isinstance(t, torch.Tensor):
            raise TypeError(f"an operator returns tensors, not {type(t).__name__}")
    return tensors


def expect(case: KernelCase, inputs: Sequence[Any], dtypes: Sequence[torch.dtype]) -> list[Expected]:
    """Return what `case` should give for `inputs`, for outputs of `dtypes`.

    Raises `ValueError` if reference, chain or terms return another number of tensors than the operator.
    """
    device = next((x.device for x in inputs if isinstance(x, torch.Tensor)), torch.device("cpu"))
    with device:  # a reference makes its masks and ranges where its inputs are
        return _expect(case, inputs, dtypes)


def _expect(case: KernelCase, inputs: Sequence[Any], dtypes: Sequence[torch.dtype]) -> list[Expected]:
    wide = [_widened(x) for x in inputs]
    reference = _called("reference", case.reference, _fresh(wide), len(dtypes))
    floating = [d.is_floating_point for d in dtypes]
    if not any(floating):
        return [Expected(r.to(d), None) for r, d in zip(reference, dtypes, strict=True)]
    chain = _chain(case, inputs, len(dtypes))
    terms = _called("terms", case.terms or _on_magnitudes(case), _fresh(wide), len(dtypes))
    factor = case.loosened[0] if case.loosened else 1.0
    summed_in = _summed_in(case, inputs)
    expected = []
    for r, c, t, dtype in zip(reference, chain, terms, dtypes, strict=True):
        if not dtype.is_floating_point:
            expected.append(Expected(r.to(dtype), None))
            continue
        error = (_to_double(c.to(dtype)) - r).abs()
        finite = error[torch.isfinite(error)]
        largest = float(finite.max()) if finite.numel() else 0.0
        # What is left at float32 is the default for narrower dtypes: a float64 output is summed in float64.
        wide_enough = dtype is torch.float64 and summed_in == "float32"
        unit = UNIT_ROUNDOFF["float64" if wide_enough else summed_in]
        magnitude = torch.nan_to_num(t.double().abs(), nan=0.0, posinf=0.0, neginf=0.0)
        tolerance = factor * (2 * largest + C * unit * magnitude)
        # An output is a number of its dtype: what rounding the exact result does is always allowed.
        tolerance = torch.maximum(
            tolerance.expand_as(r), (_to_double(r.to(dtype)) - r).abs().nan_to_num(nan=0.0, posinf=0.0)
        )
        expected.append(Expected(r, tolerance))
    return expected


def _summed_in(case: KernelCase, inputs: Sequence[Any]) -> str:
    """Return the precision in which `case` sums operands like `inputs`."""
    if isinstance(case.accumulates, str):
        return case.accumulates
    first = next(x.dtype for x in inputs if isinstance(x, torch.Tensor))
    return case.accumulates.get(str(first).removeprefix("torch."), "float32")


def differ(  # noqa: PLR0911 - one return a kind of difference
    expected: Expected, output: torch.Tensor, name: str
) -> tuple[str, Accuracy | None]:
    """Return ("", accuracy) if `output` is within tolerance, else a message naming the worst element."""
    want = expected.values
    got = output.detach().to(want.device)
    if got.shape != want.shape:
        return f"{name}: shape {tuple(got.shape)}, expected {tuple(want.shape)}", None
    if expected.tolerance is None:
        wrong = got != want.to(got.dtype)
        if not bool(wrong.any()):
            return "", Accuracy(0.0, 0.0, 0.0)
        return _worst(name, wrong, wrong.double(), got, want), Accuracy(_largest_gap(got, want), 0.0, float("inf"))
    values, rounded = _to_double(got), _to_double(want.to(got.dtype))
    special = ~torch.isfinite(rounded) | ~torch.isfinite(values)
    agree = (values == rounded) | (values.isnan() & rounded.isnan())
    misplaced = special & ~agree
    if bool(misplaced.any()):
        message = (
            _worst(name, misplaced, misplaced.double(), got, want) + " (NaN and infinities are compared by position)"
        )
        return message, Accuracy(float("inf"), 0.0, float("inf"))
    error = torch.where(special, 0.0, (values - want).abs())
    ratio = torch.where(error == 0, 0.0, error / expected.tolerance)
    if not ratio.numel():
        return "", Accuracy(0.0, 0.0, 0.0)
    at = int(ratio.argmax())
    accuracy = Accuracy(float(error.flatten()[at]), float(expected.tolerance.flatten()[at]), float(ratio.flatten()[at]))
    if accuracy.ratio <= 1:
        return "", accuracy
    return _worst(name, ratio > 1, ratio, got, want) + f", allowed error {accuracy.tolerance:.3g}", accuracy


def _chain(case: KernelCase, inputs: Sequence[Any], count: int) -> tuple[torch.Tensor, ...]:
    chain = case.chain or case.reference
    eights = any(isinstance(x, torch.Tensor) and x.dtype in ROUNDED_ONCE for x in inputs)
    narrow = [x.float() if eights and isinstance(x, torch.Tensor) and x.dtype in ROUNDED_ONCE else x for x in inputs]
    return _called("chain", chain, _fresh(narrow), count)


def _on_magnitudes(case: KernelCase) -> Any:
    def terms(*inputs: Any) -> Any:
        return case.reference(
            *(x.abs() if isinstance(x, torch.Tensor) and x.is_floating_point() else x for x in inputs)
        )

    return terms


def _called(what: str, function: Any, inputs: Sequence[Any], count: int) -> tuple[torch.Tensor, ...]:
    made = outputs_of(function(*inputs))
    if len(made) != count:
        raise ValueError(f"the operator returns {count} tensors, its {what} {len(made)}")
    return made


def _widened(x: Any) -> Any:
    return _to_double(x) if isinstance(x, torch.Tensor) and x.is_floating_point() else x


def _to_double(x: torch.Tensor) -> torch.Tensor:
    return x.float().double() if x.dtype in ROUNDED_ONCE else x.double()


def _fresh(inputs: Sequence[Any]) -> list[Any]:
    """Copies: a reference may write its inputs as the operator may."""
    return [x.clone() if isinstance(x, torch.Tensor) else x for x in inputs]


def _largest_gap(got: torch.Tensor, want: torch.Tensor) -> float:
    gap = (got.double() - want.double()).abs()
    return float(gap.max()) if gap.numel() else 0.0


def _worst(name: str, wrong: torch.Tensor, weight: torch.Tensor, got: torch.Tensor, want: torch.Tensor) -> str:
    weight = torch.where(weight.isnan(), torch.inf, weight)
    at = int(weight.argmax())
    index = tuple(int(i) for i in torch.unravel_index(torch.tensor(at), weight.shape)) if weight.ndim else ()
    count, of = int(wrong.sum()), wrong.numel()
    where = f"[{', '.join(map(str, index))}]" if index else ""
    here, there = _shown(got[index], want[index])
    return f"{name}{where} is {here}, expected {there}; {count} of {of} elements are wrong"


def _shown(*values: torch.Tensor) -> list[str]:
    """Return numbers as text, with as many digits as it takes to tell them apart."""
    numbers = [(_to_double(v) if v.is_floating_point() else v).item() for v in values]
    short = [f"{n:.7g}" if isinstance(n, float) else str(n) for n in numbers]
    same = len(set(short)) < len(set(numbers))
    return [f"{n:.17g}" if isinstance(n, float) else str(n) for n in numbers] if same else short
