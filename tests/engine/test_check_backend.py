"""The conformance kit: a good adapter passes, and each way of breaking the contract is named."""

from __future__ import annotations

import functools
import json
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

from portability.backend import Backend, Limits, Session
from portability.backends.cuda import Cuda
from portability.backends.interpreter import Interpreter
from portability.conformance import detection, inside, static
from portability.conformance.cases import DTYPES
from portability.conformance.model import CHECKS, Result, Verdict
from portability.interpret import opened
from portability.kernel import Sample
from portability.model import CaseInfo, Evidence, SampleInfo, Target, Timing

from .conftest import Project

KNOWN = frozenset(DTYPES)


class Good(Backend):
    """The interpreter under another name."""

    name = "good"
    targets: ClassVar[Sequence[str]] = ("good:1",)
    titles: ClassVar[Mapping[str, str]] = {"good:1": "Good"}
    families: ClassVar[Mapping[str, Sequence[str]]] = {"good:family": ("good:1",)}
    dtypes: ClassVar[Mapping[str, Sequence[str]]] = {"*": ("float32",)}
    limits: ClassVar[Mapping[str, Limits]] = {"*": Limits(threads=1024, warp=32, source="a test")}
    evidence = Evidence.INTERPRETED

    def status(self) -> Sequence[Target]:
        return [Target("good:1", self.name, "Good", evidence=self.evidence, why="a test", device="CPU")]

    def open(self, target: Target) -> AbstractContextManager[Session]:
        return opened(target)


TARGET = Good().status()[0]


def failure(result: Result) -> str:
    assert result.verdict is Verdict.FAIL, result
    return result.reason


# ------------------------------------------------------------------------------------------------ what is stated


def test_a_good_adapter_states_nothing_wrong() -> None:
    good = Good()
    found = [static.contract(good, KNOWN), static.crossing(good, good.status()), static.limits(good, "good:1")]
    assert [r.reason for r in found if r.verdict is not Verdict.PASS] == []


@pytest.mark.parametrize(
    ("attributes", "words"),
    [
        ({"name": "no good"}, "name 'no good'"),
        ({"targets": ()}, "at least one is needed"),
        ({"targets": ("good:1", "good:1")}, "is listed twice"),
        ({"targets": ("good-1",)}, "target 'good-1'"),
        ({"titles": {"bad:1": "Bad"}}, "titles['bad:1'] is no target"),
        ({"dtypes": {"*": ("float31",)}}, "'float31' is no dtype of torch"),
        ({"dtypes": {"bad": ("float32",)}}, "dtypes['bad'] is no target, family or '*'"),
        ({"dtypes": {}}, "good:1: no dtype is claimed"),
        ({"limits": {"*": 5}}, "limits['*'] is no Limits"),
        ({"families": {"good:1": ("good:1",)}}, "is a family and a target"),
        ({"families": {"good:empty": ()}}, "has no member"),
        ({"families_of": lambda *_: ["nowhere"]}, "which is no family"),
        ({"status": Backend.status}, "status() is not defined"),
    ],
)
def test_what_breaks_the_contract_is_named(attributes: dict[str, Any], words: str) -> None:
    assert words in failure(static.contract(type("Broken", (Good,), attributes)(), KNOWN))


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        (Limits(), "no source"),
        (Limits(threads=1000, warp=32, source="x"), "no multiple of a warp"),
        (Limits(shared_memory=2048, unit_shared_memory=1024, source="x"), "a compute unit has 1024"),
        (Limits(threads=1024, warp=32, unit_warps=16, source="x"), "a compute unit holds 512"),
        (Limits(registers=65536, source="x"), "unit_warps are not"),
        (Limits(buffers={"UB": 0}, source="x"), "buffers['UB'] = 0"),
        (Limits(units=-1, source="x"), "units = -1"),
    ],
)
def test_limits_that_do_not_fit_each_other_are_named(limits: Limits, words: str) -> None:
    broken = type("Broken", (Good,), {"limits": {"*": limits}})()
    assert words in failure(static.limits(broken, "good:1"))


def test_an_adapter_that_cannot_be_pickled_is_named() -> None:
    broken = Good()
    broken.callback = lambda: None  # type: ignore[attr-defined]
    assert "the adapter cannot be pickled" in failure(static.crossing(broken, broken.status()))


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ('[absent."*"]\nBLOCK = 1', "no kernel has that name"),
        ('[k."bad:1"]\nBLOCK = 1', "is no target, family"),
        ('[k."*/float31"]\nBLOCK = 1', "'float31' is no dtype"),
        ('[k."*"]\nBLOK = 1', "no block is named 'BLOK'"),
        ('[k."*"]\nBLOCK = 1.5', "BLOCK = 1.5 is no whole number"),
        ('[k."*"\n', "Expected"),
    ],
)
def test_entries_of_a_block_table_that_mean_nothing_are_named(tmp_path: Path, table: str, words: str) -> None:
    path = tmp_path / "good.toml"
    path.write_text(table)
    broken = type("Broken", (Good,), {"block_table": lambda _: path})()
    case = CaseInfo("k", ("float32",), (SampleInfo("1"),), blocks={"BLOCK": 64})
    assert words in failure(static.blocks(broken, [case], KNOWN))


# ---------------------------------------------------------------------------------------------------- detection


def test_a_detection_without_side_effects_passes() -> None:
    assert detection.detection(Good()).verdict is Verdict.PASS


def test_what_another_process_leaves_meanwhile_is_not_the_adapters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def beside(self: Good) -> Sequence[Target]:
        (tmp_path / f"of another process {len(os.listdir(tmp_path))}").touch()
        return [TARGET]

    monkeypatch.setattr(Good, "status", beside)
    assert detection.detection(Good()).verdict is Verdict.PASS


def _sets_a_variable(self: Good) -> Sequence[Target]:
    os.environ["LEFT_BEHIND"] = str(len(os.environ))
    return [TARGET]


def _writes_a_file(self: Good) -> Sequence[Target]:
    Path(tempfile.gettempdir(), "left-behind-by-a-test").touch()
    return [TARGET]


def _changes_its_mind(self: Good) -> Sequence[Target]:
    self.asked = getattr(self, "asked", 0) + 1  # type: ignore[attr-defined]
    return [replace(TARGET, why=f"asked {self.asked} times")]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (_sets_a_variable, "environment variables"),
        (_writes_a_file, "temporary files"),
        (_changes_its_mind, "two answers differ"),
        (lambda _: [], "good:1 is missing"),
        (lambda _: [replace(TARGET, why="")], "without a word why no more"),
        (lambda _: [replace(TARGET, evidence=Evidence.NONE)], "no remedy is named"),
        (lambda _: [replace(TARGET, evidence=Evidence.RAN, device="")], "no device that is named"),
        (lambda _: [replace(TARGET, backend="other")], "backend is 'other'"),
    ],
)
def test_what_a_detection_leaves_behind_or_leaves_out_is_named(status: Any, words: str) -> None:
    broken = type("Broken", (Good,), {"status": status})()
    try:
        assert words in failure(detection.detection(broken))
    finally:
        os.environ.pop("LEFT_BEHIND", None)
        Path(tempfile.gettempdir(), "left-behind-by-a-test").unlink(missing_ok=True)


# ------------------------------------------------------------------------------------------------- opened targets


@pytest.mark.parametrize("check", ["opening", "recording", "synchronization"])
def test_the_interpreter_passes_what_can_be_had_of_it(check: str) -> None:
    assert inside.INSIDE[check](Good(), TARGET).verdict is Verdict.PASS


def compiled(target: str = "cuda:80") -> Target:
    return Target(target, "cuda", evidence=Evidence.COMPILED, why="a test")


@pytest.mark.parametrize("check", ["opening", "recording", "memory"])
def test_a_compile_only_target_passes_what_can_be_had_of_it(check: str) -> None:
    assert inside.INSIDE[check](Cuda(), compiled()).verdict is Verdict.PASS


def test_what_cannot_be_had_says_why() -> None:
    with pytest.raises(inside.Impossible, match="nothing is executed"):
        inside.synchronization(Cuda(), compiled())
    with pytest.raises(inside.Impossible, match="no measure of speed"):
        inside.timing(Interpreter(), Interpreter().status()[0])
    with pytest.raises(inside.Impossible, match="a test"):
        inside.opening(Good(), replace(TARGET, evidence=Evidence.NONE))


@contextmanager
def _keeps_a_patch(self: Good, target: Target) -> Iterator[Session]:
    from triton.runtime.jit import JITFunction

    with opened(target) as session:
        yield session
    plain = JITFunction.run
    JITFunction.run = functools.partialmethod(plain)


@contextmanager
def _records_nothing(self: Good, target: Target) -> Iterator[Session]:
    with opened(target):
        yield Session(target)


def test_a_patch_that_is_left_is_named() -> None:
    from triton.runtime.jit import JITFunction

    plain = JITFunction.run
    try:
        assert "JITFunction.run is not what it was" in failure(
            inside.opening(type("Broken", (Good,), {"open": _keeps_a_patch})(), TARGET)
        )
    finally:
        JITFunction.run = plain


def test_launches_that_are_not_recorded_are_named() -> None:
    broken = type("Broken", (Good,), {"open": _records_nothing})()
    assert "one launch is 0 records" in failure(inside.recording(broken, TARGET))


def test_limits_that_a_compile_does_not_know_are_named() -> None:
    """The launch check is Triton's own, against what the driver states: an adapter that states another is found."""

    class Deaf(Cuda):
        name = "deaf"

        def open(self, target: Target) -> AbstractContextManager[Session]:
            return Cuda().open(target)  # with limits of its own

    assert "shared memory of 256 B: pass" in failure(inside.memory(Deaf(), compiled()))


# ------------------------------------------------------------------------------------------------ time on a device


class Timed(Good):
    """A device, as far as it is asked for times: each as the test says for the number of elements."""

    evidence = Evidence.RAN
    ms: Callable[[int], float] = staticmethod(lambda n: n / 1e6)

    def measure(self, target: Target, call: Any, torch_call: Any, cost: Any, warmup_ms: float, rep_ms: float) -> Timing:
        median = self.ms(int(cost.bytes) // 12)
        return Timing(median, median * 0.99, median * 1.01, "launch", 10, warmup_ms, rep_ms, stable=True)


@pytest.fixture
def sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sizes that are timed are large; the interpreter takes 1/1024 of them."""
    from portability.conformance import cases

    def smaller(sample: Sample) -> Sample:
        return replace(sample, inputs=lambda draw: (draw.normal(int(sample.name) // 1024),))

    samples = tuple(smaller(s) if s.bench else s for s in cases.CASE.samples)
    monkeypatch.setattr(cases, "CASE", replace(cases.CASE, samples=samples))


@pytest.mark.usefixtures("sizes")
def test_times_that_grow_with_the_work_pass() -> None:
    assert inside.timing(Timed(), replace(TARGET, evidence=Evidence.RAN)).verdict is Verdict.PASS


@pytest.mark.usefixtures("sizes")
@pytest.mark.parametrize(("ms", "words"), [(lambda _: 1.0, "takes 1.00 times as long"), (lambda _: -1.0, "quantiles")])
def test_times_that_measure_nothing_are_named(ms: Callable[[int], float], words: str) -> None:
    broken = type("Broken", (Timed,), {"ms": staticmethod(ms)})()
    assert words in failure(inside.timing(broken, replace(TARGET, evidence=Evidence.RAN)))


def test_an_allocation_that_fails_by_another_name_is_named() -> None:
    """The CPU's allocator raises a plain RuntimeError: on a device it would be taken for a fault of the kernel."""
    there = replace(TARGET, evidence=Evidence.RAN, memory=2**60)
    assert "device memory: launch_error" in failure(inside.memory(Timed(), there))


# ----------------------------------------------------------------------------------------------------- the command


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "target"), [("cuda", "cuda:86"), ("rocm", "hip:gfx1201"), ("interpreter", "interpreter")]
)
def test_bundled_adapters_keep_the_contract(project: Callable[[str], Project], name: str, target: str) -> None:
    done = project("").portability("check-backend", name, "--target", target, "--format", "json")
    assert done.returncode == 0, done.stdout + done.stderr
    results = json.loads(done.stdout)["results"]
    assert {r["check"] for r in results} == set(CHECKS)
    assert all(r["reason"] for r in results)


@pytest.mark.slow
def test_ascend_keeps_the_contract_with_and_without_its_environment(project: Callable[[str], Project]) -> None:
    made = project("")
    here = made.portability("check-backend", "ascend")
    assert here.returncode == 0, here.stdout + here.stderr
    without = made.portability(
        "check-backend", "ascend", variables={"PORTABILITY_ENVIRONMENTS": str(made.folder / "none")}
    )
    assert without.returncode == 0, without.stdout + without.stderr
    assert "cannot be had here: npu:Ascend910B3: triton-ascend is not installed" in without.stdout


LYING = '''
"""The interpreter, which claims what it does not have and does not claim what it has."""
from portability.backend import Backend, Limits
from portability.interpret import opened
from portability.kernel import Sample
from portability.model import Evidence, Target

class Lying(Backend):
    name = "lying"
    targets = ("lying:1",)
    dtypes = {"*": ("float32",)}
    limits = {"*": Limits(source="a test")}

    def status(self):
        return [Target("lying:1", self.name, evidence=Evidence.INTERPRETED, why="a test")]

    def open(self, target):
        return opened(target)
'''


@pytest.mark.slow
def test_a_loose_adapter_that_claims_too_little_fails(project: Callable[[str], Project]) -> None:
    made = project('[matrix]\nbackends = ["lying"]\n')
    (made.folder / "lying.py").write_text(LYING)
    done = made.portability("check-backend", "lying")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "fail: lying:1: bfloat16 works, and is not claimed; bool works" in done.stdout


def test_a_name_that_is_none_is_refused_with_the_choices(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from portability.cli import main

    monkeypatch.chdir(tmp_path)
    assert main(["check-backend", "cudda"]) == 2
    assert "no backend 'cudda'; nearest is cuda" in capsys.readouterr().err
