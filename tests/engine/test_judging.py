"""One cell judged, with a backend whose kernels are torch: each thing that an operator can do wrong has its outcome."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from portability.backend import Backend, Launch, Limits, Session
from portability.kernel import Blocks, KernelCase, Sample
from portability.model import Cell, Evidence, Finding, Observation, Outcome, Target
from portability.run import Options, run_cell

Operator = Callable[["FakeSession", torch.Tensor], torch.Tensor]


class FakeSession(Session):
    """An opened device whose operators see in which order, with which poison and in which stream they run."""

    def __init__(self, target: Target, streams: bool) -> None:
        super().__init__(target)
        self.streams, self.away = streams, False
        self.order = self.filling = 0
        self.orders: list[int] = []

    def vary(self, order: int, poison: int) -> None:
        self.order, self.filling = order, poison
        self.orders.append(order)

    @contextlib.contextmanager
    def elsewhere(self) -> Iterator[None]:
        self.away = True
        yield
        self.away = False


class Fake(Backend):
    """A device that is the CPU."""

    name, targets, guard = "fake", ("fake:1",), 64
    limits = {"*": Limits(warp=32, threads=1024)}  # noqa: RUF012 - as an adapter states them

    def __init__(self, **session: Any) -> None:
        self.set = session
        self.session: FakeSession | None = None

    @contextlib.contextmanager
    def open(self, target: Target) -> Iterator[FakeSession]:
        self.session = FakeSession(target, streams=self.set.get("streams", False))
        for name, value in self.set.items():
            setattr(self.session, name, value)
        yield self.session


def judged(
    operator: Operator, evidence: Evidence = Evidence.RAN, dtype: str = "float32", sample: str = "quick",
    launch: Launch | None = None, reference: Any = lambda x: x * 2, session: dict[str, Any] | None = None, **case: Any,
) -> Observation:  # fmt: skip
    """Return what a run of a cell says of an operator that should double its input."""
    backend = Fake(**(session or {}))

    def called(x: torch.Tensor, blocks: Blocks | None = None) -> torch.Tensor:
        assert backend.session is not None
        backend.session.launches += [launch or Launch("k", grid=(1,))]
        return operator(backend.session, x)

    samples = [Sample(n, lambda draw: (draw.normal(40),), quick=n == "quick") for n in ("quick", "other")]
    made = KernelCase(name="doubled", operator=called, reference=reference, samples=samples, dtypes=[dtype], **case)
    target = Target("fake:1", "fake", evidence=evidence)
    cell = Cell("doubled", dtype, sample, "fake:1")
    return run_cell(cell, made, backend, target, Blocks(), "case default", Options(timing=False))


def doubled(_: FakeSession, x: torch.Tensor) -> torch.Tensor:
    return x * 2


def past_the_end(_: FakeSession, x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    out.as_strided((1,), (1,), out.storage_offset() + x.numel()).fill_(1)
    return out.copy_(x * 2)


def before_the_start(_: FakeSession, x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    out.as_strided((1,), (1,), out.storage_offset() - 1).fill_(1)
    return out.copy_(x * 2)


def past_the_input(_: FakeSession, x: torch.Tensor) -> torch.Tensor:
    x.as_strided((1,), (1,), x.storage_offset() + x.numel() + 3).fill_(1)
    return x * 2


def into_its_input(_: FakeSession, x: torch.Tensor) -> torch.Tensor:
    made = x * 2
    x[3] += 1
    return made


def partly_written(_: FakeSession, x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    out[:-1] = x[:-1] * 2
    return out


def partly_defined(session: FakeSession, x: torch.Tensor) -> torch.Tensor:
    made = x * 2
    made[0] = made[0] + 100 + session.filling
    return made


def in_order(session: FakeSession, x: torch.Tensor) -> torch.Tensor:
    return x * 2 + (session.order != 0)


def shuffled(session: FakeSession, x: torch.Tensor) -> torch.Tensor:
    return x * 2 + (session.order > 1)


def restless(session: FakeSession, x: torch.Tensor) -> torch.Tensor:
    return x * 2 * (1 + 2.0**-23 * (len(session.orders) % 2))


def outside_of_the_stream(session: FakeSession, x: torch.Tensor) -> torch.Tensor:
    return x * 2 + session.away


def for_aligned(_: FakeSession, x: torch.Tensor) -> torch.Tensor:
    return x * 2 + (x.data_ptr() % 16 != 0)


def refusing(_: FakeSession, x: torch.Tensor) -> torch.Tensor:
    if x.data_ptr() % 16:
        raise ValueError("x must be aligned to 16 bytes")
    return x * 2


FAULTS: list[tuple[Operator, Outcome, str, dict[str, Any]]] = [
    (lambda _, x: x * 2 + 1e-3, Outcome.WRONG, "output[", {}),
    (lambda _, x: x[:-1] * 2, Outcome.WRONG, "shape (39,), expected (40,)", {}),
    (past_the_end, Outcome.OUT_OF_BOUNDS, "4 bytes written after it, the nearest 0 bytes away", {}),
    (before_the_start, Outcome.OUT_OF_BOUNDS, "4 bytes written before it, the nearest 0 bytes away", {}),
    (past_the_input, Outcome.OUT_OF_BOUNDS, "input 0: 4 bytes written after it, the nearest 12 bytes away", {}),
    (into_its_input, Outcome.WRONG, "input 0 was written by the operator", {}),
    (partly_written, Outcome.UNDEFINED_VALUE, "output 0[39] follows what memory held that no one wrote", {}),
    (partly_defined, Outcome.UNDEFINED_VALUE, "output 0[0] follows", {"session": {"ordered": True}}),
    (in_order, Outcome.RACE, "depends on the order in which programs run", {"session": {"ordered": True}}),
    (shuffled, Outcome.RACE, "depends on the order", {"session": {"ordered": True, "entangled": True}}),
    (restless, Outcome.NONDETERMINISTIC, "differs in bits from run to run", {}),
    (outside_of_the_stream, Outcome.RACE, "differs in another stream", {"session": {"streams": True}}),
    (for_aligned, Outcome.WRONG, "with inputs one element further on", {"session": {"streams": True}}),
    (doubled, Outcome.OUT_OF_RESOURCES, "axis 1 is 70000, at most 65535", {"launch": Launch("k", grid=(1, 70000))}),
    (doubled, Outcome.OUT_OF_RESOURCES, "1056 threads", {"launch": Launch("k", grid=(1,), num_warps=33)}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("operator", "outcome", "said", "more"), FAULTS, ids=[f"{i}-{o}" for i, (_, o, *_) in enumerate(FAULTS)]
)
def test_each_fault_has_its_outcome(operator: Operator, outcome: Outcome, said: str, more: dict[str, Any]) -> None:
    observation = judged(operator, **more)
    assert observation.outcome is outcome, observation.detail
    assert said in observation.detail


RIGHT: list[tuple[Operator, dict[str, Any]]] = [
    (doubled, {}),
    (doubled, {"session": {"streams": True, "ordered": False}}),
    (doubled, {"session": {"ordered": True, "entangled": True}}),
    (restless, {"deterministic": False}),  # within tolerance, and the case says so
    (refusing, {"session": {"streams": True}}),  # an operator may say what it does not take
    (for_aligned, {"session": {"streams": True}, "sample": "other"}),  # another layout is tried on the quick sample
    (into_its_input, {"mutates": (0,)}),
]


@pytest.mark.parametrize(("operator", "more"), RIGHT, ids=[f"{i}-{o.__name__}" for i, (o, _) in enumerate(RIGHT)])
def test_a_right_operator_passes(operator: Operator, more: dict[str, Any]) -> None:
    observation = judged(operator, **more)
    assert observation.outcome is Outcome.PASS, observation.detail


def test_programs_that_share_nothing_are_not_shuffled() -> None:
    assert judged(shuffled, session={"ordered": True}).outcome is Outcome.PASS


def test_an_operator_that_launches_nothing_fails() -> None:
    def lazy(session: FakeSession, x: torch.Tensor) -> torch.Tensor:
        session.launches.clear()
        return x * 2

    seen = judged(lazy)
    assert (seen.outcome, seen.detail) == (Outcome.LAUNCH_ERROR, "the operator launched no kernel")


@pytest.mark.parametrize("evidence", [Evidence.RAN, Evidence.INTERPRETED, Evidence.EMULATED, Evidence.COMPILED])
def test_the_evidence_is_the_targets(evidence: Evidence) -> None:
    """And only what executes has an accuracy: of what was compiled no value is known, so that none is wrong."""
    wrong = judged(lambda _, x: x * 3, evidence)
    assert wrong.evidence is evidence
    assert wrong.outcome is (Outcome.WRONG if evidence.executes else Outcome.PASS)
    assert (wrong.accuracy is not None) == evidence.executes


def test_error_and_tolerance_are_recorded() -> None:
    accuracy = judged(lambda _, x: x * 2 + 1e-9).accuracy
    assert accuracy is not None
    assert 0 < accuracy.error <= accuracy.tolerance
    assert accuracy.ratio <= 1


def test_the_worst_of_several_problems_decides_and_all_are_told() -> None:
    observation = judged(past_the_input, reference=lambda x: x * 3)
    assert observation.outcome is Outcome.OUT_OF_BOUNDS
    assert "elements are wrong" in observation.detail


def test_warnings_are_kept_and_decide_nothing() -> None:
    def warning(session: FakeSession, x: torch.Tensor) -> torch.Tensor:
        session.warnings.append(Finding("int-overflow", "an offset wraps round"))
        return x * 2

    observation = judged(warning)
    assert observation.outcome is Outcome.PASS
    assert [w.code for w in observation.warnings] == ["int-overflow"]


@pytest.mark.parametrize(("passed_on", "kept"), [(0.0, []), (1.0, ["nan-minmax"])])
def test_nan_in_a_maximum_is_told_only_where_it_matters(passed_on: float, kept: list[str]) -> None:
    """A row that is NaN by other means, as softmax's, is the same whatever its maximum does with NaN."""

    def with_nan(session: FakeSession, x: torch.Tensor) -> torch.Tensor:
        session.warnings.append(Finding("nan-minmax", "NaN in a maximum"))
        return x * 2 + passed_on * session.passes_nan

    assert [w.code for w in judged(with_nan).warnings][:1] == kept


def test_launches_in_other_places_are_not_recorded() -> None:
    assert judged(doubled, session={"streams": True}).launches == judged(doubled).launches


def test_every_input_differs_and_all_targets_get_the_same() -> None:
    seen: list[torch.Tensor] = []

    def keeping(_: FakeSession, x: torch.Tensor) -> torch.Tensor:
        seen.append(x.clone())
        return x * 2

    judged(keeping)
    judged(keeping, Evidence.INTERPRETED)
    assert all(torch.equal(seen[0], x) for x in seen)
    assert len(set(seen[0].tolist())) == 40


def test_an_error_of_a_reference_is_the_harness_own() -> None:
    def broken(x: torch.Tensor) -> torch.Tensor:
        raise RuntimeError("no such operation")

    observation = judged(doubled, reference=broken)
    assert observation.outcome is Outcome.HARNESS_ERROR
    assert observation.stage == "reference"


@pytest.mark.parametrize("dtype", ["int32", "bool", "float16", "int8"])
def test_what_is_not_written_shows_at_every_dtype(dtype: str) -> None:
    """The poison of two executions differs in every element, whatever the type holds."""

    def unwritten(_: FakeSession, x: torch.Tensor) -> torch.Tensor:
        return torch.empty_like(x)

    observation = judged(unwritten, dtype=dtype, reference=lambda x: x)
    assert observation.outcome is Outcome.UNDEFINED_VALUE, observation.detail


@pytest.mark.parametrize(
    ("ahead", "sample", "skews"), [(True, "quick", [0, 4]), (True, "other", [0]), (False, "quick", [0])]
)
def test_what_a_device_launches_with_moved_inputs_is_compiled_ahead(ahead: bool, sample: str, skews: list[int]) -> None:
    """Triton compiles anew for another alignment: in the device's own process that would keep the others waiting."""
    seen: list[int] = []

    def operator(x: torch.Tensor, blocks: Blocks | None = None) -> torch.Tensor:
        seen.append(x.data_ptr() % 16)
        return x * 2

    samples = [Sample(n, lambda draw: (draw.normal(40),), quick=n == "quick") for n in ("quick", "other")]
    case = KernelCase(name="doubled", operator=operator, reference=operator, samples=samples, dtypes=["float32"])
    target = Target("fake:1", "fake", evidence=Evidence.COMPILED)
    run_cell(
        Cell("doubled", "float32", sample, "fake:1"), case, Fake(), target, Blocks(), "", Options(ahead=ahead)
    )  # fmt: skip
    assert seen == skews
