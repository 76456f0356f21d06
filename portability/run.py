"""One cell -> one Observation: inputs, the target, the reference, and what came of it."""

from __future__ import annotations

import contextlib
import time
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from portability.attempts import Attempts, Progress, is_moved, moved
from portability.backend import Backend, Launch, Problem, Session, blocks_of, check_launch
from portability.kernel import Blocks, Draw, Inputs, KernelCase, Sample, relative
from portability.model import Cell, Evidence, Observation, Outcome, Resources, Target, Timing
from portability.outcomes import problem_of
from portability.paths import without_paths

OPTION = "launch."  # begins the names of probes that are about an option of a launch
GRID = "launch.grid"  # which is none
DETAIL_LINES = 12  # enough for an error and its cause; the whole is in the log of the run


@dataclass(frozen=True)
class Options:
    """What a run asks of its cells."""

    seed: int = 0
    timing: bool = True
    warmup_ms: float = 25.0
    rep_ms: float = 100.0
    root: str = "."  # paths in observations are relative to it
    ahead: bool = False  # what is compiled will run on a device: compile all that a cell launches there


def run_cell(
    cell: Cell, case: KernelCase, backend: Backend, target: Target, blocks: Blocks, blocks_from: str, options: Options,
    noted: list[Problem] | None = None,
) -> Observation:  # fmt: skip
    """Return what happened to `cell`. Never raises for what a kernel does; crashes and hangs are its caller's.

    The observation tells the worst problem; `noted` is given each of them, with its code and line.
    """
    started = time.perf_counter()
    progress = Progress(device=target.device)
    try:
        _run(progress, cell, case, backend, target, blocks, options)
    except Exception as error:  # judged by the table above, never swallowed
        progress.problems.append(problem_of(error, progress.session, progress.stage, Path(options.root)))
    if noted is not None:
        noted += progress.problems
    return _observation(progress, cell, target, blocks, blocks_from, options, time.perf_counter() - started)


# --------------------------------------------------------------------------------------------- one cell's way


def _run(
    progress: Progress, cell: Cell, case: KernelCase, backend: Backend, target: Target, blocks: Blocks, options: Options
) -> None:
    import torch

    progress.stage = "inputs"
    dtype = getattr(torch, cell.dtype)
    sample = case.sample(cell.sample.partition(".as.")[0])
    inputs = inputs_of(case, sample, dtype, blocks, options.seed)
    progress.stage = "open"
    with backend.open(target) as session, blocks_of(backend.name, target.id):
        progress.session = session
        session.configs = "all"  # a device tries them all before it chooses, with what that does to its outputs
        if session.evidence.executes:
            outputs = _execute(progress, case, backend, target, sample, inputs, blocks)
        else:
            progress.stage = "compile"
            case.operator(*inputs, blocks=blocks)
            if options.ahead and is_moved(case, sample):
                with contextlib.suppress(ValueError):  # as in `Attempts.judge_placement`
                    case.operator(*moved(inputs), blocks=blocks)
            outputs = None
    progress.stage = "launch"
    if not session.launches and all(x.numel() for x in inputs if isinstance(x, torch.Tensor)):
        progress.problems.append(Problem(Outcome.LAUNCH_ERROR, "nothing-launched", "the operator launched no kernel"))
    asked = [n.removeprefix(OPTION) for n in case.names if n.startswith(OPTION) and n != GRID]
    if asked and session.evidence is Evidence.INTERPRETED and not progress.problems:
        said = f"the interpreter takes {', '.join(asked)} and does nothing with it"
        progress.problems.append(Problem(Outcome.IGNORED, "ignored-option", said))
    limits = backend.limits_of(target.id)
    kept = [x for x in session.launches if not (x.config and x.error)]  # tuning drops a configuration that fails
    progress.problems += [p for launch in kept for p in check_launch(limits, launch)]
    if outputs is not None and sample.bench and options.timing and not progress.problems and case.launch is not None:
        progress.stage = "time"
        progress.timing = _time(case, backend, target, outputs, blocks, options)


def inputs_of(case: KernelCase, sample: Sample, dtype: Any, blocks: Blocks, seed: int) -> Inputs:
    """Return a sample's inputs, the same for every target: the seed is that of the run and of the sample's name."""
    return tuple(sample.inputs(Draw(dtype, blocks, seed + zlib.crc32(f"{case.name} {sample.name}".encode()))))


def _execute(
    progress: Progress,
    case: KernelCase,
    backend: Backend,
    target: Target,
    sample: Sample,
    inputs: Inputs,
    blocks: Blocks,
) -> tuple[Inputs, tuple[Any, ...]]:
    """Run, check what a correct kernel leaves alone, compare, and run again in another way."""
    from portability import compare

    session, device = progress.session, backend.tensor_device(target)
    assert session is not None
    attempts = Attempts(progress, case, session, backend, device, inputs, blocks)
    progress.stage = "run"
    began = time.perf_counter()
    outputs = attempts.run(order=0, poison=0)
    seconds = time.perf_counter() - began
    progress.stage = "reference"
    # A timed sample is large: its reference is computed where it ran.
    known = attempts.placed if sample.bench else inputs
    expected = compare.expect(case, known, [o.dtype for o in outputs])
    progress.stage = "compare"
    for i, (e, o) in enumerate(zip(expected, outputs, strict=True)):
        message, accuracy = compare.differ(e, o, f"output {i}" if len(outputs) > 1 else "output")
        if accuracy and (progress.accuracy is None or accuracy.ratio > progress.accuracy.ratio):
            progress.accuracy = accuracy
        if message:
            progress.problems.append(Problem(Outcome.WRONG, "wrong-value", message))
    progress.stage = "repeat"
    if not sample.bench:
        attempts.judge_repetition(outputs, expected)
        attempts.judge_placement(outputs, expected, moved=is_moved(case, sample))
    if not target.index and target.evidence.executes and backend.device == "cpu":
        progress.timing = _no_performance(seconds)
    return attempts.placed, attempts.made


def _time(
    case: KernelCase,
    backend: Backend,
    target: Target,
    held: tuple[Inputs, tuple[Any, ...]],
    blocks: Blocks,
    options: Options,
) -> Timing:
    inputs, outputs = held
    assert case.launch is not None
    launch, torch_call = case.launch, case.torch or case.chain or case.reference
    cost = case.cost(*inputs, *outputs) if case.cost else None
    return backend.measure(
        target,
        lambda: launch(*inputs, *outputs, blocks),
        lambda: torch_call(*inputs),
        cost,
        options.warmup_ms,
        options.rep_ms,
    )


def _no_performance(seconds: float) -> Timing:
    ms = seconds * 1e3
    return Timing(ms, ms, ms, "interpreter", 1, 0.0, 0.0, stable=False, performance=False)


# ------------------------------------------------------------------------------------------------ the record


def _observation(
    progress: Progress, cell: Cell, target: Target, blocks: Blocks, blocks_from: str, options: Options, seconds: float
) -> Observation:
    session = progress.session
    launches = session.launches if session else []
    problems = sorted(progress.problems, key=lambda p: -p.outcome.severity)
    worst = problems[0] if problems else None
    root = Path(options.root)
    warnings = [*progress.warnings, *(session.warnings if session else [])]
    return Observation(
        cell=cell,
        evidence=target.evidence,
        outcome=worst.outcome if worst else Outcome.PASS,
        stage=progress.stage if worst else "",
        detail=_detail(problems, root),
        line=_relative_line(worst.line, root) if worst else "",
        warnings=tuple(dict.fromkeys(replace(w, line=_relative_line(w.line, root)) for w in warnings)),
        accuracy=progress.accuracy,
        resources=_resources(session, launches),
        timing=progress.timing,
        launches=len(launches),
        binaries=len({x.hash for x in launches if x.hash}),
        blocks=dict(blocks),
        blocks_from=blocks_from,
        seconds=round(seconds, 4),
        compile_seconds=round(sum({x.hash: x.compile_seconds for x in launches}.values()), 4),
        versions=dict(target.versions),
        device=progress.device,
        tunings=tuple(session.tunings.values()) if session else (),
        when=datetime.now(timezone.utc).isoformat(timespec="seconds"),
    )  # fmt: skip


def _detail(problems: Sequence[Problem], root: Path) -> str:
    lines = "\n".join(dict.fromkeys(p.message for p in problems)).splitlines()
    return without_paths("\n".join(lines[:DETAIL_LINES]), root)


def _resources(session: Session | None, launches: Sequence[Launch]) -> tuple[Resources, ...]:
    """One record for each distinct binary."""
    if session is None:
        return ()
    found: dict[str, Resources] = {}
    for launch in launches:
        if launch.compiled is not None and launch.hash not in found:
            resources = session.resources(launch)
            if resources is not None:
                found[launch.hash] = resources
    return tuple(found.values())


def _relative_line(line: str, root: Path) -> str:
    file, colon, number = line.rpartition(":")
    return f"{relative(file, root)}:{number}" if colon and file else line
