"""Every bundled kernel at drawn shapes, layouts and dtypes, under the checked interpreter: right, or refused by name.

Inputs are cut out of a sample of the case: dimensions of one size are one size of the operation, and are cut alike in
all inputs, so that a kernel that is added is drawn for too. What counts or points into another input (integers beside
floats) is not cut. Then each input may be moved in memory or given other strides. An operator may refuse what it does
not take by `ValueError` or `TypeError`; what it takes it must do right.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch

from portability.backend import discover as discover_backends
from portability.backend import look_up_blocks
from portability.kernel import Draw, KernelCase, Sample, discover
from portability.model import Cell, Evidence, Observation, Outcome, Target
from portability.run import Options, run_cell

hypothesis = pytest.importorskip("hypothesis")
st = pytest.importorskip("hypothesis.strategies")

pytestmark = pytest.mark.slow  # minutes: every kernel is interpreted several times

CASES = {name: case for name, case in discover().cases.items() if not case.group}
TARGET = Target("interpreter", "interpreter", evidence=Evidence.INTERPRETED)
SIZES = (1, 2, 3, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100, 128, 129)
LAYOUTS = ("as it is", "as it is", "offset", "strided", "transposed")
EXAMPLES = 4  # a case: hypothesis draws the same ones every time
MOST = 1 << 16  # elements of the inputs: the interpreter takes milliseconds a program


def small_samples(case: KernelCase) -> list[Sample]:
    """The samples that are run anywhere, smallest inputs first."""
    drawn = [(sum(x.numel() for x in tensors(inputs_of(case, s))), s) for s in case.samples if not s.bench]
    ranked = sorted((pair for pair in drawn if 0 < pair[0] <= MOST), key=lambda pair: pair[0])
    return [s for _, s in ranked] or [min(drawn, key=lambda pair: pair[0] or MOST * MOST)[1]]


def inputs_of(case: KernelCase, sample: Sample, dtype: str = "") -> tuple[Any, ...]:
    kind = dtype or (sample.dtypes or tuple(case.dtypes))[0]
    return tuple(sample.inputs(Draw(getattr(torch, kind), case.blocks, 0)))


def tensors(inputs: Sequence[Any]) -> Iterator[torch.Tensor]:
    yield from (x for x in inputs if isinstance(x, torch.Tensor))


def cut(x: Any, sizes: Mapping[int, int]) -> Any:
    """Return the first elements of `x` along each dimension, laid out anew."""
    if not isinstance(x, torch.Tensor):
        return sizes.get(x, x) if type(x) is int and x > 1 else x
    return x[tuple(slice(0, sizes.get(n, n)) for n in x.shape)].contiguous()


def laid_out(x: Any, layout: str) -> Any:
    """Return the same values elsewhere in memory or with other strides."""
    if not isinstance(x, torch.Tensor) or not x.ndim or not x.numel():
        return x
    draw = Draw(x.dtype, next(iter(CASES.values())).blocks, 0)
    if layout == "offset":
        return draw.offset(x)
    if layout == "strided":
        return draw.strided(x)
    return draw.transposed(x) if layout == "transposed" and x.ndim > 1 else x


def observed(case: KernelCase, dtype: str, inputs: tuple[Any, ...]) -> Observation:
    """Return what a run says of the case at these inputs."""
    drawn = replace(case, samples=[Sample("drawn", lambda _: inputs)], dtypes=[dtype])
    backend = discover_backends()["interpreter"]
    blocks = look_up_blocks(backend, case.name, "interpreter", dtype, case.blocks).blocks
    cell = Cell(case.name, dtype, "drawn", "interpreter")
    try:
        return run_cell(cell, drawn, backend, TARGET, blocks, "", Options(timing=False))
    finally:
        replace(case)  # the name stands for the case itself again


def refused(observation: Observation) -> bool:
    """Whether the operator said that it does not take the inputs, or its reference could not."""
    by_operator = observation.outcome is Outcome.LAUNCH_ERROR and observation.stage == "run"
    by_reference = observation.outcome is Outcome.HARNESS_ERROR and observation.stage == "reference"
    return (by_operator and observation.detail.startswith(("ValueError", "TypeError"))) or by_reference


@pytest.mark.parametrize("name", sorted(CASES))
def test_a_kernel_is_right_at_any_shape_layout_and_dtype_that_it_takes(name: str) -> None:
    case = CASES[name]
    samples = small_samples(case)
    met: Counter[str] = Counter()

    @hypothesis.settings(  # type: ignore[untyped-decorator]  # of a module that may be missing
        max_examples=EXAMPLES, derandomize=True, database=None, deadline=None,
        suppress_health_check=list(hypothesis.HealthCheck), phases=[hypothesis.Phase.generate],
    )  # fmt: skip
    @hypothesis.given(st.data())  # type: ignore[untyped-decorator]
    def drawn(data: Any) -> None:
        sample = data.draw(st.sampled_from(samples), "sample")
        dtype = data.draw(st.sampled_from(sample.dtypes or tuple(case.dtypes)), "dtype")
        inputs = inputs_of(case, sample, dtype)
        points = any(x.is_floating_point() for x in tensors(inputs)) and any(
            not x.is_floating_point() for x in tensors(inputs)
        )
        present = sorted({n for x in tensors(inputs) for n in x.shape if n > 1}) if not points else []
        sizes = {n: data.draw(st.sampled_from([*(s for s in SIZES if s < n), n]), f"{n} becomes") for n in present}
        layouts = [data.draw(st.sampled_from(LAYOUTS), f"input {i}") for i, _ in enumerate(inputs)]
        made = tuple(laid_out(cut(x, sizes), layout) for x, layout in zip(inputs, layouts, strict=True))
        observation = observed(case, dtype, made)
        if refused(observation):
            # A size that means something (of a head, a page) is not to be cut: the layout alone then.
            made = tuple(laid_out(x, layout) for x, layout in zip(inputs, layouts, strict=True))
            observation = observed(case, dtype, made)
        met["refused" if refused(observation) else "taken"] += 1
        assert refused(observation) or observation.outcome is Outcome.PASS, observation.detail

    drawn()
    assert met["taken"] > 0, f"all {met['refused']} inputs were refused"
