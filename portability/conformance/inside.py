"""Checks that open targets: made by a runner in the adapter's own environment, each in a process that may end."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import torch

from portability import backend as backends
from portability.backend import Backend
from portability.conformance import cases
from portability.conformance.detection import active_driver, detection
from portability.conformance.model import Result, Verdict, result
from portability.kernel import Blocks, KernelCase, Sample
from portability.model import Cell, Evidence, Observation, Outcome, Target, from_json, to_json
from portability.run import Options, run_cell

SHARED = 256  # bytes: less than any product's operands
WIDE = 1 << 20  # elements of one block of float32: more than any core's memory, and the most that Triton takes
GROWTH = (2.0, 512.0)  # how much longer 64 times the work may take: small work is bounded by its launch
SPIN = 2_000_000  # dependent steps: milliseconds on any device
NOTHING_RUNS = "nothing is executed on this target here"


class Impossible(Exception):
    """A check cannot be made here; the message says why."""


def examine(request: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the results of `request["check"]` for one adapter, on one target or on all, as JSON's types."""
    adapter = backends.discover(tuple(request.get("backends", ())))[request["backend"]]
    target = from_json(Target, request["target"]) if request.get("target") else None
    name = request["check"]
    try:
        found = detection(adapter) if target is None else INSIDE[name](adapter, target)
    except Impossible as reason:
        found = Result(name, Verdict.NOT_HERE, str(reason))
    return [to_json(replace(found, target=target.id if target else ""))]


# ------------------------------------------------------------------------------------------------------ opening


def opening(adapter: Backend, target: Target) -> Result:
    """Open and leave, once in order and once by an error: what Triton has patched must be as before."""
    _needs(target, Evidence.LOWERED)
    problems = []
    for raises in (False, True):
        before = _hooks()
        with contextlib.suppress(_Deliberate), adapter.open(target) as session:
            launches = session.launches
            cases.widen(_input(adapter, target))
            if raises:
                raise _Deliberate
        after, how = _hooks(), "an error" if raises else "leaving"
        problems += [f"after {how}, {name} is not what it was" for name in before if before[name] != after[name]]
        problems += [f"before {how}, nothing was launched"] if not launches else []
    return result("opening", problems, "driver, JIT, tuner, variables and device are as they were")


class _Deliberate(Exception):
    """Raised within an opened target."""


def _hooks() -> dict[str, Any]:
    from triton.runtime.autotuner import Autotuner
    from triton.runtime.jit import JITFunction

    return {
        "JITFunction.run": JITFunction.run,
        "Autotuner.run": Autotuner.run,
        "Triton's driver": active_driver(),
        "TRITON_INTERPRET": os.environ.get("TRITON_INTERPRET"),
        "triton.language.load": sys.modules["triton.language"].load,
        "torch's default device": torch.get_default_device().type,
    }


def recording(adapter: Backend, target: Target) -> Result:
    """Launch once, and once with nothing to do."""
    _needs(target, Evidence.LOWERED)
    with adapter.open(target) as session:
        cases.widen(_input(adapter, target))
        cases.widen(_input(adapter, target)[:0])
        session.synchronize()
    if len(session.launches) != 1:
        return result("recording", [f"one launch is {len(session.launches)} records"], "")
    launch = session.launches[0]
    problems = [f"the kernel is {launch.kernel!r}"] if not launch.kernel.endswith("widen_kernel") else []
    problems += [f"its file is {launch.file!r}"] if not launch.file.endswith("cases.py") else []
    problems += [f"the grid is {launch.grid}"] if tuple(launch.grid)[:1] != (2,) else []
    problems += [f"an error is recorded: {launch.error}"] if launch.error is not None else []
    if not target.evidence.executes:
        problems += ["BLOCK is not among its constants"] if launch.constants.get("BLOCK") != 256 else []
        problems += ["it has no hash"] if not launch.hash else []
    return result(
        "recording", problems, f"{launch.kernel}, grid {tuple(launch.grid)}, {len(launch.constants)} constants"
    )


# ----------------------------------------------------------------------------------------- synchronization, time


def synchronization(adapter: Backend, target: Target) -> Result:
    """What was launched has ended when it returns; a second call has nothing to wait for."""
    if not target.evidence.executes:
        raise Impossible(NOTHING_RUNS)
    with adapter.open(target) as session:
        if target.evidence is not Evidence.RAN:
            copy, _ = cases.widen(_input(adapter, target))
            session.synchronize()
            right = bool((copy == _input(adapter, target)).all())
            return result(
                "synchronization", [] if right else ["the values are not there"], "values are there at return"
            )
        x = torch.ones(1 << 20, device=adapter.tensor_device(target))
        cases.spin_kernel[(1024,)](x, 1, BLOCK=1024)  # compiled before it is timed
        session.synchronize()
        launched = _seconds(lambda: cases.spin_kernel[(1024,)](x, SPIN, BLOCK=1024))
        first, second = _seconds(session.synchronize), _seconds(session.synchronize)
    said = f"the launch took {launched * 1e3:.2f} ms, waiting {first * 1e3:.2f} ms, waiting again {second * 1e3:.2f} ms"
    return result("synchronization", [] if first > 4 * max(second, launched) else [said], said)


def timing(adapter: Backend, target: Target) -> Result:
    """Time two sizes of one copy; where nothing is timed, say so."""
    if target.evidence is not Evidence.RAN:
        observed = _cell(adapter, target, cases.CASE, "257")
        if observed.timing is None or not observed.timing.performance:
            raise Impossible("it runs on no device: no time is given for one" if observed.timing is None else (
                "its times are marked as no measure of speed"
            ))  # fmt: skip
        return result("timing", [f"{target.evidence}, and a time is given as a measure of speed"], "")
    small, large = (_cell(adapter, target, cases.CASE, s, timed=True) for s in ("1048576", "67108864"))
    if small.timing is None or large.timing is None:
        return result("timing", [f"a timed sample has no time: {small.detail or large.detail}"], "")
    problems = []
    for t in (small.timing, large.timing):
        ordered = 0 < t.p20 <= t.median <= t.p80
        problems += [] if ordered else [f"quantiles {t.p20:g}, {t.median:g}, {t.p80:g} ms"]
        problems += [f"{t.ceiling:.2f} of {t.ceiling_of}"] if t.ceiling is not None and t.ceiling > 2 else []
    growth = large.timing.median / small.timing.median
    problems += [] if GROWTH[0] <= growth <= GROWTH[1] else [f"64 times the work takes {growth:.2f} times as long"]
    said = f"{small.timing.median:.4g} ms, and {growth:.1f} times as long for 64 times the work"
    return result("timing", problems, said)


def _seconds(call: Callable[[], Any]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


# ------------------------------------------------------------------------------------------------------- memory


def memory(adapter: Backend, target: Target) -> Result:
    """Ask for more than there is: of the device's memory where one is here, and of what a program may use."""
    _needs(target, Evidence.LOWERED)
    problems, said = [], []
    for what, observed in _greedy(adapter, target):
        said.append(f"{what}: {observed.outcome}")
        if observed.outcome is not Outcome.OUT_OF_RESOURCES:
            first = (observed.detail.splitlines() or [""])[0]
            problems.append(f"{what}: {observed.outcome} {first}".rstrip())
    if not said:
        raise Impossible("it states no limit on memory, and allocates on no device")
    after = _cell(adapter, target, cases.CASE, "257")
    problems += [f"the next cell: {after.outcome}"] if after.outcome is not Outcome.PASS else []
    return result("memory", problems, "; ".join([*said, "the next cell runs"]))


def _greedy(adapter: Backend, target: Target) -> Iterator[tuple[str, Observation]]:
    limits = adapter.limits_of(target.id)
    if target.evidence is Evidence.RAN and target.memory:

        def allocate(x: torch.Tensor, blocks: Blocks | None = None) -> torch.Tensor:  # noqa: ARG001 - an operator's
            return torch.empty(2 * target.memory, dtype=torch.uint8, device=x.device)

        case = KernelCase(
            name="conformance_memory", operator=allocate, reference=lambda x: x, dtypes=("float32",),
            samples=[Sample("1", lambda draw: (draw.normal(1),))],
        )  # fmt: skip
        yield "device memory", _cell(adapter, target, case, "1")
    elif limits.buffers:
        wide = Blocks(BLOCK=WIDE, num_warps=4)
        yield f"a block of {4 * WIDE} B", _cell(adapter, target, cases.CASE, "257", wide)
    elif limits.shared_memory is not None and not target.evidence.executes:
        yield f"shared memory of {SHARED} B", _cell(_Smaller(adapter), target, cases.SQUARE, "64")


class _Smaller:
    """An adapter whose targets have next to no shared memory."""

    def __init__(self, adapter: Backend) -> None:
        self._adapter = adapter

    def __getattr__(self, name: str) -> Any:
        return getattr(self._adapter, name)

    @contextlib.contextmanager
    def open(self, target: Target) -> Iterator[Any]:
        """Open the target, with its limits made small meanwhile."""
        small = replace(self._adapter.limits_of(target.id), shared_memory=SHARED)
        self._adapter.limits_of = lambda _: small  # type: ignore[method-assign, assignment]
        try:
            with self._adapter.open(target) as session:
                yield session
        finally:
            del self._adapter.limits_of


# -------------------------------------------------------------------------------------------------------- shared


def _needs(target: Target, least: Evidence) -> None:
    if target.evidence.rank < least.rank:
        raise Impossible(f"{target.why}; {target.remedy}" if target.remedy else target.why)


def _input(adapter: Backend, target: Target) -> torch.Tensor:
    return torch.arange(257, dtype=torch.float32).to(adapter.tensor_device(target))


def _cell(
    adapter: Any, target: Target, case: KernelCase, sample: str, blocks: Blocks | None = None, timed: bool = False
) -> Observation:
    cell = Cell(case.name, case.dtypes[0], sample, target.id, target.environment)
    return run_cell(cell, case, adapter, target, blocks or case.blocks, "conformance", Options(timing=timed))


INSIDE: Mapping[str, Callable[[Backend, Target], Result]] = {
    "opening": opening, "recording": recording, "synchronization": synchronization, "timing": timing, "memory": memory,
}  # fmt: skip
