"""One cell -> one Observation: inputs, reference, the target, and which exception is which outcome."""

from __future__ import annotations

import inspect
import re
import time
import traceback
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from portability.backend import Backend, Launch, Problem, Session, blocks_of, check_launch
from portability.kernel import Blocks, Draw, Inputs, KernelCase, Sample, relative
from portability.model import Accuracy, Cell, Finding, Observation, Outcome, Resources, Target, Timing
from portability.paths import without_paths

DETAIL_LINES = 12  # enough for an error and its cause; the whole is in the log of the run

# Foreign exceptions by class name, so that nothing has to be imported to look one up. What is in no row and was not
# raised by a launch or an operator is the harness's own bug, and is recorded as such.
OUTCOMES: Mapping[str, Outcome] = {
    "OutOfResources": Outcome.OUT_OF_RESOURCES,
    "OutOfMemoryError": Outcome.OUT_OF_RESOURCES,
    "CompilationError": Outcome.COMPILE_ERROR,
    "CompileTimeAssertionFailure": Outcome.COMPILE_ERROR,
    "UnsupportedLanguageConstruct": Outcome.COMPILE_ERROR,
    "PTXASError": Outcome.COMPILE_ERROR,
    "MLIRCompilationError": Outcome.COMPILE_ERROR,
    "CompilerSaidError": Outcome.COMPILE_ERROR,
    "InterpreterError": Outcome.COMPILE_ERROR,
    "AcceleratorError": Outcome.LAUNCH_ERROR,
    "Unsupported": Outcome.UNSUPPORTED,
    "SpinTimeout": Outcome.TIMEOUT,
}
# Where the message tells more than the class. Searched in order, in the first lines of the message.
MESSAGES: Sequence[tuple[re.Pattern[str], Outcome]] = [
    (re.compile(r"illegal memory access|misaligned address|an illegal instruction"), Outcome.OUT_OF_BOUNDS),
    (re.compile(r"too much shared data|uses too much|out of resource|exceeds? .*(LDS|local memory|shared memory)", re.I), Outcome.OUT_OF_RESOURCES),
    (re.compile(r"was specified but unrecognised|Triton Error \[(CUDA|HIP)\]"), Outcome.LAUNCH_ERROR),
    (re.compile(r"PassManager::run failed|failed to translate|LLVM ERROR|Cannot select"), Outcome.COMPILE_ERROR),
]  # fmt: skip
STICKY = re.compile(r"CUDA error|HIP error|Triton Error \[(CUDA|HIP)\]|CUDNN_STATUS")  # every later call fails too


@dataclass(frozen=True)
class Options:
    """What a run asks of its cells."""

    seed: int = 0
    timing: bool = True
    warmup_ms: float = 25.0
    rep_ms: float = 100.0
    root: str = "."  # paths in observations are relative to it


@dataclass
class _Progress:
    """Where a cell is, and what is known of it already: an exception loses nothing."""

    stage: str = "open"
    session: Session | None = None
    accuracy: Accuracy | None = None
    timing: Timing | None = None
    problems: list[Problem] = field(default_factory=list)
    warnings: list[Finding] = field(default_factory=list)
    device: str = ""


def run_cell(
    cell: Cell, case: KernelCase, backend: Backend, target: Target, blocks: Blocks, blocks_from: str, options: Options,
    noted: list[Problem] | None = None,
) -> Observation:  # fmt: skip
    """Return what happened to `cell`. Never raises for what a kernel does; crashes and hangs are its caller's.

    The observation tells the worst problem; `noted` is given each of them, with its code and line.
    """
    started = time.perf_counter()
    progress = _Progress(device=target.device)
    try:
        _run(progress, cell, case, backend, target, blocks, options)
    except Exception as error:  # judged by the table above, never swallowed
        progress.problems.append(_problem_of(error, progress, options))
    if noted is not None:
        noted += progress.problems
    return _observation(progress, cell, backend, target, blocks, blocks_from, options, time.perf_counter() - started)


def poisons(observation: Observation) -> bool:
    """Return whether what happened leaves the process unable to use its device."""
    return bool(STICKY.search(observation.detail))


# --------------------------------------------------------------------------------------------- one cell's way


def _run(
    progress: _Progress, cell: Cell, case: KernelCase, backend: Backend, target: Target, blocks: Blocks, options: Options
) -> None:
    import torch

    progress.stage = "inputs"
    dtype = getattr(torch, cell.dtype)
    sample = case.sample(cell.sample.partition(".as.")[0])
    inputs = _inputs(case, sample, dtype, blocks, options.seed)
    progress.stage = "open"
    with backend.open(target) as session, blocks_of(backend.name, target.id):
        progress.session = session
        session.configs = "all"  # a device tries them all before it chooses, with what that does to its outputs
        if session.evidence.executes:
            outputs = _execute(progress, case, backend, target, sample, inputs, blocks)
        else:
            progress.stage = "compile"
            case.operator(*inputs, blocks=blocks)
            outputs = None
    progress.stage = "launch"
    if not session.launches and all(x.numel() for x in inputs if isinstance(x, torch.Tensor)):
        progress.problems.append(Problem(Outcome.LAUNCH_ERROR, "nothing-launched", "the operator launched no kernel"))
    limits = backend.limits_of(target.id)
    progress.problems += [p for launch in session.launches for p in check_launch(limits, launch)]
    if outputs is not None and sample.bench and options.timing and not progress.problems and case.launch is not None:
        progress.stage = "time"
        progress.timing = _time(case, backend, target, outputs, blocks, options)


def _inputs(case: KernelCase, sample: Sample, dtype: Any, blocks: Blocks, seed: int) -> Inputs:
    """The same values for every target: the seed is that of the run and of the sample's name."""
    return tuple(sample.inputs(Draw(dtype, blocks, seed + zlib.crc32(f"{case.name} {sample.name}".encode()))))


def _execute(
    progress: _Progress, case: KernelCase, backend: Backend, target: Target, sample: Sample, inputs: Inputs, blocks: Blocks
) -> tuple[Inputs, tuple[Any, ...]]:
    """Run, check what a correct kernel leaves alone, compare, and run again in another way."""
    from portability import compare

    session, device = progress.session, backend.tensor_device(target)
    assert session is not None
    attempts = _Attempts(progress, case, session, backend, device, inputs, blocks)
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
    if not target.index and target.evidence.executes and backend.device == "cpu":
        progress.timing = _no_performance(seconds)
    return attempts.placed, attempts.made


@dataclass
class _Attempts:
    """Executions of one cell that a correct kernel cannot tell apart."""

    progress: _Progress
    case: KernelCase
    session: Session
    backend: Backend
    device: str
    inputs: Inputs
    blocks: Blocks
    placed: Inputs = ()
    made: tuple[Any, ...] = ()

    def run(self, order: int, poison: int) -> tuple[Any, ...]:
        """Return the outputs of one execution, and note what it touched that was not its own."""
        import torch

        from portability.compare import outputs_of
        from portability.memory import Memory, unchanged

        memory = Memory(self.backend.guard, poison)
        self.placed = tuple(
            memory.place(f"input {i}", x, self.device) if isinstance(x, torch.Tensor) else x
            for i, x in enumerate(self.inputs)
        )
        self.session.vary(order, poison)
        with memory:
            made = outputs_of(self.case.operator(*self.placed, blocks=self.blocks))
        self.session.synchronize()
        self.made = made
        self._note(Outcome.OUT_OF_BOUNDS, "guard-zone", [str(b) for b in memory.breaches()])
        written = [
            f"input {i} was written by the operator"
            for i, (x, p) in enumerate(zip(self.inputs, self.placed, strict=True))
            if isinstance(x, torch.Tensor) and i not in self.case.mutates and not unchanged(x, p)
        ]
        self._note(Outcome.WRONG, "input-changed", written)
        self.progress.problems += [p for p in self.session.problems if p not in self.progress.problems]
        memory.release()
        return made

    def judge_repetition(self, first: Sequence[Any], expected: Sequence[Any]) -> None:
        """Run with other poison and in another order; a difference that follows the poison is an undefined value."""
        from portability.compare import differ
        from portability.memory import unchanged

        def same(a: Sequence[Any], b: Sequence[Any]) -> bool:
            return all(unchanged(x, y) for x, y in zip(a, b, strict=True))

        def right(made: Sequence[Any]) -> bool:
            return not any(differ(e, o, "")[0] for e, o in zip(expected, made, strict=True))

        first = [o.clone() for o in first]
        second = [o.clone() for o in self.run(order=1, poison=1)]
        if same(first, second) or (not self.case.deterministic and right(first) and right(second)):
            return
        third = self.run(order=0, poison=1)
        if not same(first, third) and (self.session.ordered or same(second, third)):
            follows = f"{_place(first, third)} follows what memory held that no one wrote"
            self._note(Outcome.UNDEFINED_VALUE, "undefined-value", [follows])
            self.progress.problems += self.session.undefined()
        elif right(second) and right(third):
            if self.case.deterministic:
                self._note(Outcome.NONDETERMINISTIC, "nondeterministic", [f"{_place(first, second)} differs in bits from run to run"])
        else:
            self._note(Outcome.RACE, "race", [f"{_place(first, second)} depends on the order in which programs run"])
            self.session.trace = True  # once more, to name the two programs
            self.run(order=0, poison=0)
            self.session.trace = False

    def _note(self, outcome: Outcome, code: str, messages: Sequence[str]) -> None:
        for message in messages:
            problem = Problem(outcome, code, message)
            if problem not in self.progress.problems:
                self.progress.problems.append(problem)


def _place(a: Sequence[Any], b: Sequence[Any]) -> str:
    """Name the first element in which two executions differ."""
    import torch

    for i, (x, y) in enumerate(zip(a, b, strict=True)):
        x, y = x.detach().cpu().contiguous(), y.detach().cpu().contiguous()
        size = x.element_size()
        bits = (x.view(torch.uint8) != y.view(torch.uint8)).reshape(-1, size).any(-1) if x.numel() and x.ndim else None
        if bits is not None and bool(bits.any()):
            at = torch.unravel_index(torch.nonzero(bits)[0, 0], x.shape)
            return f"output {i}[{', '.join(str(int(n)) for n in at)}]"
    return "an output"


def _time(
    case: KernelCase, backend: Backend, target: Target, held: tuple[Inputs, tuple[Any, ...]], blocks: Blocks, options: Options
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


def _problem_of(error: Exception, progress: _Progress, options: Options) -> Problem:
    """Name what an exception means. The launch that raised it knows the kernel's line."""
    launch = next((x for x in reversed(progress.session.launches) if x.error is error), None) if progress.session else None
    message = _message(error)
    outcome = next((o for pattern, o in MESSAGES if pattern.search(message)), None)
    outcome = outcome or next((OUTCOMES[c.__name__] for c in type(error).__mro__ if c.__name__ in OUTCOMES), None)
    if outcome is None:
        inside = progress.stage in ("compile", "run", "repeat") and _raised_outside(error)
        outcome = (Outcome.COMPILE_ERROR if launch else Outcome.LAUNCH_ERROR) if inside else Outcome.HARNESS_ERROR
    if outcome is Outcome.HARNESS_ERROR:
        message += "\n" + "".join(traceback.format_exception(error)[-3:])
    return Problem(outcome, "exception", message, getattr(error, "line", "") or _line_of(error, launch, message, options))


def _raised_outside(error: BaseException) -> bool:
    """Whether an exception came out of an operator or of Triton, and not out of this package's own files."""
    frames = traceback.extract_tb(error.__traceback__)
    engine = Path(__file__).resolve().parent
    last = Path(frames[-1].filename).resolve() if frames else engine
    return last.parent != engine


def _message(error: BaseException) -> str:
    text = _front_end(error) or str(error).strip() or type(error).__name__
    cause = None if hasattr(error, "error_message") else error.__cause__
    if cause is not None and str(cause).strip() and str(cause).strip() not in text:
        text += f"\n{type(cause).__name__}: {str(cause).strip()}"
    name = type(error).__name__
    return text if name in ("CompilerSaidError", "RuntimeError") else f"{name}: {text}"


def _front_end(error: BaseException) -> str:
    """Return what Triton's front end says, before the source that it shows at length; empty for other errors.

    An error in a helper is wrapped once for each caller, which quotes it: the innermost one says it best.
    """
    if not hasattr(error, "error_message") or not hasattr(error, "node"):
        return ""
    innermost: Any = error
    while hasattr(innermost.__cause__, "error_message"):
        innermost = innermost.__cause__
    said = str(innermost.error_message or innermost.__cause__ or "").strip()
    shown = str(error).removesuffix(str(error.error_message or "")).strip()
    return f"{said}\n{shown}" if said else ""


def _line_of(error: BaseException, launch: Launch | None, message: str, options: Options) -> str:
    """Return the kernel's own line: of the front end's error, of the code generator's message, or of the definition."""
    root = Path(options.root)
    node, source = getattr(error, "node", None), getattr(error, "src", None)
    function = _function_of(launch.function, source) if launch is not None and source else None
    if function is not None and node is not None:
        code = function.fn.__code__
        lines = source.count("\n", 0, source.find("def ")) if source and "def " in source else 0
        first = _def_line(function.fn)
        return f"{relative(code.co_filename, root)}:{first + node.lineno - 1 - lines}"
    said = re.search(r"([^\s\"']+\.py)[:\"](?:, line )?(\d+)", launch.stderr or message) if launch else None
    if said:
        return f"{relative(said[1], root)}:{said[2]}"
    return f"{relative(launch.file, root)}:{launch.line}" if launch is not None and launch.file else ""


def _def_line(fn: Any) -> int:
    """Return the line of `def`: Triton's sources begin there, and code objects at the first decorator."""
    lines, first = inspect.getsourcelines(fn)
    return first + next((i for i, line in enumerate(lines) if line.lstrip().startswith("def ")), 0)


def _function_of(function: Any, source: str) -> Any:
    """Return the jitted function, or the helper it calls, whose source an error carries."""
    seen: set[int] = set()
    waiting = [function]
    while waiting:
        candidate = waiting.pop()
        if id(candidate) in seen or not hasattr(candidate, "fn") or not hasattr(candidate.fn, "__globals__"):
            continue
        seen.add(id(candidate))
        if getattr(candidate, "src", None) == source:
            return candidate
        names = candidate.fn.__code__.co_names
        waiting += [candidate.fn.__globals__[n] for n in names if n in candidate.fn.__globals__]
    return None


def _observation(
    progress: _Progress, cell: Cell, backend: Backend, target: Target, blocks: Blocks, blocks_from: str, options: Options, seconds: float
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
