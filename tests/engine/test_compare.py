"""What an element may be off by: the formula of `portability.compare`, from both sides of its bound."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from portability.compare import UNIT_ROUNDOFF, C, differ, expect, outputs_of
from portability.kernel import KernelCase, Sample

U32 = 2.0**-24
NAN, INF = float("nan"), float("inf")


def case(reference: Callable[..., Any] = lambda x: x, **more: Any) -> KernelCase:
    sample = Sample("one", lambda draw: (draw.normal(4),))
    return KernelCase(
        name="judged", operator=reference, reference=reference, samples=[sample], dtypes=["float32"], **more
    )


def allowed(of: KernelCase, x: torch.Tensor, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    tolerance = expect(of, (x,), [dtype])[0].tolerance
    assert tolerance is not None
    return tolerance


def told(of: KernelCase, x: torch.Tensor, output: torch.Tensor) -> str:
    return differ(expect(of, (x,), [output.dtype])[0], output, "output")[0]


def test_the_sum_of_terms_times_the_roundoff_is_allowed() -> None:
    """Exactly eight roundoffs of the accumulating type times Σ|terms|, where the chain makes no error."""
    x = torch.tensor([1.0, -2.0, 4.0])
    assert C == 8
    assert torch.equal(allowed(case(), x), 8 * U32 * x.double().abs())
    own = case(terms=lambda x: torch.full_like(x, 100.0))
    assert torch.equal(allowed(own, x), torch.full((3,), 800 * U32, dtype=torch.float64))


def test_twice_the_error_of_the_chain_is_allowed() -> None:
    x = torch.tensor([1.0, 2.0])
    chain = case(chain=lambda x: x + 0.25, terms=torch.zeros_like)
    assert allowed(chain, x).tolist() == [0.5, 0.5]


@pytest.mark.parametrize(("named", "unit"), sorted(UNIT_ROUNDOFF.items()))
def test_a_named_precision_has_its_roundoff(named: str, unit: float) -> None:
    assert allowed(case(accumulates=named), torch.ones(1)).item() == pytest.approx(8 * unit)


def test_a_precision_may_be_that_of_a_dtype_alone() -> None:
    by_dtype = case(accumulates={"float16": "bfloat16"})
    assert allowed(by_dtype, torch.ones(1, dtype=torch.float16)).item() == pytest.approx(8 * 2.0**-8)
    assert allowed(by_dtype, torch.ones(1)).item() == pytest.approx(8 * U32)


def test_a_float64_output_is_summed_in_float64() -> None:
    x = torch.ones(1, dtype=torch.float64)
    assert allowed(case(), x, torch.float64).item() == pytest.approx(8 * 2.0**-53)


def test_rounding_the_exact_result_is_always_allowed() -> None:
    x = torch.tensor([1 / 3], dtype=torch.float64)
    nothing = case(terms=torch.zeros_like)
    rounded = (x.to(torch.float16).double() - x).abs()
    assert allowed(nothing, x, torch.float16).item() >= rounded.item()
    assert told(nothing, x, x.to(torch.float16)) == ""


def test_a_loosened_case_is_loosened_by_its_factor_and_no_more() -> None:
    x = torch.ones(2)
    assert torch.equal(allowed(case(loosened=(3.0, "why")), x), 3 * allowed(case(), x))


@pytest.mark.parametrize(("share", "passes"), [(0.0, True), (0.99, True), (1.01, False), (2.0, False)])
def test_an_error_up_to_the_bound_passes_and_beyond_it_not(share: float, passes: bool) -> None:
    x = torch.tensor([1.0, 1000.0], dtype=torch.float64)
    of = case(accumulates="float16")
    expected = expect(of, (x,), [torch.float64])[0]
    assert expected.tolerance is not None
    output = x.clone()
    output[1] += share * expected.tolerance[1]
    message, accuracy = differ(expected, output, "output")
    assert (message == "") == passes
    assert accuracy is not None
    assert accuracy.ratio == pytest.approx(share, rel=1e-6)
    assert passes or message.startswith("output[1] is ")


WRONG_PLACES = [
    ([1.0, NAN], [NAN, 1.0]),
    ([1.0, INF], [1.0, -INF]),
    ([1.0, INF], [1.0, 3e38]),
    ([1.0, 2.0], [1.0, NAN]),
]


@pytest.mark.parametrize(("want", "got"), WRONG_PLACES)
def test_nan_and_infinities_are_compared_by_position(want: list[float], got: list[float]) -> None:
    assert told(case(), torch.tensor(want), torch.tensor(want)) == ""
    message = told(case(), torch.tensor(want), torch.tensor(got))
    assert "NaN and infinities are compared by position" in message


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64, torch.uint8, torch.bool])
def test_integers_and_bool_are_equal_or_wrong(dtype: torch.dtype) -> None:
    x = torch.tensor([0, 1, 1]).to(dtype)
    assert told(case(), x, x) == ""
    other = torch.tensor([0, 1, 0]).to(dtype)
    assert "output[2] is 0" in told(case(), x, other).replace("False", "0")


def test_another_shape_is_wrong() -> None:
    assert told(case(), torch.ones(2, 3), torch.ones(3, 2)) == "output: shape (3, 2), expected (2, 3)"


def test_the_worst_element_is_named_with_how_many_are_wrong() -> None:
    x = torch.ones(2, 3)
    output = x.clone()
    output[1, 2], output[0, 0] = 5.0, 2.0
    assert told(case(), x, output).startswith("output[1, 2] is 5, expected 1; 2 of 6 elements are wrong")


def test_numbers_that_look_alike_are_told_apart() -> None:
    x = torch.tensor([0.1, 1e40], dtype=torch.float64)
    output = x.clone()
    output[0] = 0.10000000149
    assert told(case(), x, output).startswith("output[0] is 0.10000000149, expected 0.10000000000000001;")
    assert "output[1] is 1, expected 1e+40;" in told(case(), x, torch.tensor([0.1, 1.0], dtype=torch.float64))


def test_float8_is_computed_in_float32_and_rounded_once() -> None:
    x = torch.tensor([1.0, 1.5, 240.0]).to(torch.float8_e4m3fn)
    more = case(lambda x: x * 1.125)
    right = (x.float() * 1.125).to(torch.float8_e4m3fn)
    assert told(more, x, right) == ""
    assert told(more, x, (x.float() * 2).to(torch.float8_e4m3fn)) != ""


def test_a_reference_that_writes_its_input_harms_no_other() -> None:
    x = torch.ones(2)
    of = case(lambda x: x.add_(1))
    assert told(of, x, torch.full((2,), 2.0)) == ""
    assert torch.equal(x, torch.ones(2))


def test_another_number_of_outputs_is_refused() -> None:
    with pytest.raises(ValueError, match="the operator returns 2 tensors, its reference 1"):
        expect(case(), (torch.ones(1),), [torch.float32] * 2)
    with pytest.raises(TypeError, match="an operator returns tensors, not float"):
        outputs_of(1.0)
