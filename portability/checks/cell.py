"""One file on one target, in a runner: the file's `run` as a cell, its specs, its tuned configurations, other layouts.

Where values are computed, `run` is called once more for each tuned configuration, as tuning itself calls it, and with
inputs that lie elsewhere in memory.
"""

from __future__ import annotations

import contextlib
import inspect
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from portability import backend as backends
from portability.backend import Backend, Problem, Session
from portability.checks import layouts
from portability.checks.assembly import read
from portability.checks.loose import Loose, UnreadableError, load
from portability.checks.model import Answer, Fault, Made, Seen
from portability.checks.subject import SAMPLE, SpecSubject, Subject, argument
from portability.kernel import Blocks, KernelCase, relative
from portability.model import Cell, Evidence, Observation, Outcome, Target, from_json, to_json
from portability.run import Options, run_cell

PROGRAMS = 1024  # the most of one launch that are interpreted
CONFIGS = 12  # the most of one tuned kernel that are run each by itself
PATIENCE = 20.0  # seconds: what took longer is not run again in other layouts
# A wrapper that looks at its inputs' layout means to take any, or to refuse it.
LAYOUTS = re.compile(r"is_contiguous|\.contiguous\(|\.stride\([^)]*\)\s*[!=]=")
VALUES = {Outcome.WRONG, Outcome.RACE, Outcome.UNDEFINED_VALUE, Outcome.NONDETERMINISTIC}
ELEMENT = re.compile(r"\boutput ?(\d*)(?:\[([\d, ]*)\])?")  # as `portability.compare` and `run` write it
SILENT = {Outcome.WRONG, Outcome.OUT_OF_BOUNDS, Outcome.RACE, Outcome.UNDEFINED_VALUE}

# Codes of exceptions by their message, in this order; what is in none is named by its outcome.
CODES: Sequence[tuple[str, str]] = [
    (r"was specified but unrecognised", "unknown-option"),
    (r"out of resource: shared memory|LDS|shared data", "shared-memory"),
    (r"out of resource: tensor memory", "tensor-memory"),
    (r"out of resource: threads", "threads"),
    (r"Input shapes should have M >=", "dot-minimum"),
    (r"input_precision must be one of", "dot-precision-name"),
    (r"type fp8\w+ not supported in this architecture", "float8-type"),
    (r"libdevice' has no attribute", "libdevice-gap"),
    (r"range must be a power of 2|must be a power of 2|Shape element \d+ must be a power of 2", "not-a-power-of-two"),
    (r"\bUB\b.*overflow|\b(UB|L1|L0C)\b", "buffer"),
    (r"inline assembly|register for constraint|invalid instruction", "inline-assembly"),
]
SEEN = {
    Evidence.RAN: Seen.RAN, Evidence.EMULATED: Seen.EMULATED, Evidence.INTERPRETED: Seen.INTERPRETED,
    Evidence.COMPILED: Seen.COMPILED, Evidence.LOWERED: Seen.LOWERED,
}  # fmt: skip
# What these say of a run under the interpreter is said of the interpreter alone.
ITS_OWN = {Outcome.UNSUPPORTED, Outcome.COMPILE_ERROR, Outcome.LAUNCH_ERROR, Outcome.HARNESS_ERROR}


def check(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the file `request["file"]` does on `request["target"]`, an `Answer` as JSON's types."""
    target = from_json(Target, request["target"])
    started = time.perf_counter()
    try:
        loose = load(Path(request["file"]))
        adapter = backends.discover(tuple(request.get("backends", ())))[target.backend]
        answer = _Check(loose, adapter, target, Path(request["root"])).answer()
    except UnreadableError as error:
        answer = Answer(target.evidence, Outcome.HARNESS_ERROR, broken=str(error))
    made: dict[str, Any] = to_json(replace(answer, seconds=round(time.perf_counter() - started, 3)))
    return made


class _Watched:
    """An adapter that shows the sessions which it opens."""

    def __init__(self, adapter: Backend, opened: Callable[[Session], None]) -> None:
        self._adapter, self._opened = adapter, opened
        self.sessions: list[Session] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._adapter, name)

    @contextlib.contextmanager
    def open(self, target: Target) -> Iterator[Session]:
        """Open the target as the adapter does."""
        with self._adapter.open(target) as session:
            self.sessions.append(session)
            self._opened(session)
            yield session


class _Check:
    """The passes of one file on one target, and what they found."""

    def __init__(self, loose: Loose, adapter: Backend, target: Target, root: Path) -> None:
        self.loose, self.adapter, self.target, self.root = loose, adapter, target, root
        self.faults: list[Fault] = []
        self.made: list[Made] = []
        self.launches = 0

    def answer(self) -> Answer:
        """Run every pass."""
        if self.loose.cases:
            observations = [self._case(case, dtype) for case in self.loose.cases for dtype in _dtypes(case)]
        else:
            observations = [*self._run(), *self._specs()]
        worst = max(observations, key=lambda o: o.outcome.severity, default=None)
        outcome = worst.outcome if worst else Outcome.UNAVAILABLE
        detail = worst.detail.split("\n")[0] if worst else "nothing here for this target"
        found = tuple(dict.fromkeys(self.faults))
        return Answer(self.target.evidence, outcome, found, tuple(self.made), detail, launches=self.launches)

    # ------------------------------------------------------------------------------------------- the passes

    def _case(self, case: KernelCase, dtype: str) -> Observation:
        sample = next((s for s in case.samples if s.quick), case.samples[0])
        blocks = backends.look_up_blocks(self.adapter, case.name, self.target.id, dtype, case.blocks)
        observation, problems, _ = self._once(case, dtype, sample.name, blocks.blocks, self._limit)
        self._take(observation, problems)
        return observation

    def _run(self) -> list[Observation]:
        if self.loose.run is None:
            return []
        observation, session = self._pass(Subject(self.loose, self._device))
        self._find_lines(session)
        if session is not None and observation.evidence.executes:
            self._tuned(observation, session)
            if observation.outcome is Outcome.PASS and observation.seconds < PATIENCE:
                self._elsewhere()
        return [observation]

    @property
    def _device(self) -> str:
        return self.adapter.tensor_device(self.target)

    def _pass(
        self, subject: Subject, note: str = "", prepare: Callable[[Any], None] | None = None
    ) -> tuple[Observation, Session | None]:
        """Run the file once under all checks, and take what is found; `note` is added to its messages."""

        def opened(session: Session) -> None:
            self._limit(session)
            subject.watch(session)
            if prepare is not None:
                prepare(session)

        observation, problems, session = self._once(subject.case(), "float32", SAMPLE, Blocks(), opened)
        if observation.outcome is Outcome.HARNESS_ERROR and observation.stage in ("reference", "compare", "inputs"):
            raise UnreadableError(observation.detail.split("\n")[0].removeprefix("UnreadableError: "))
        if subject.nothing_to_compute():
            problems = [p for p in problems if p.code != "nothing-launched"]
            observation = observation if problems else replace(observation, outcome=Outcome.PASS, detail="")
        self._take(observation, problems, note, subject.line)
        return observation, session

    def _find_lines(self, session: Any) -> None:
        """Give lines to faults of values: the store of the element, else where the kernel is defined."""
        if any(f.outcome is Outcome.UNDEFINED_VALUE for f in self.faults) and hasattr(session, "undefined"):
            self._take_problems(session.undefined())
        named = {f.outcome for f in self.faults if f.line}
        self.faults = [f for f in self.faults if f.line or f.outcome not in named or f.outcome in (None, Outcome.WRONG)]
        for i, fault in enumerate(self.faults):
            if not fault.line and fault.outcome in VALUES and session is not None and session.launches:
                last = session.launches[-1]
                line = self._stored_at(fault.message) or f"{last.file}:{last.line}"
                self.faults[i] = replace(fault, line=self._short(line))

    def _stored_at(self, message: str) -> str:
        m = ELEMENT.search(message)
        if m is None:
            return ""
        output, element = int(m[1] or 0), tuple(int(n) for n in (m[2] or "").split(",") if n.strip())
        with contextlib.suppress(Exception), self.adapter.open(self.target) as session:  # the fault stands without it
            self._limit(session)
            session.vary(0, 0)
            return Subject(self.loose, self._device).locate(session, output, element)
        return ""

    def _tuned(self, first: Observation, session: Session) -> None:
        """Run each configuration by itself on fresh outputs, then all in turn, as tuning does."""
        if not any(launch.config for launch in session.launches) or not hasattr(session, "configs"):
            return
        if first.outcome is not Outcome.PASS:
            return  # what is wrong is not the tuning
        wrong = [o for name, tuner in self.loose.tuners().items() for o in self._each(name, tuner)]
        known = len(self.faults)
        observation, _ = self._pass(Subject(self.loose, self._device), prepare=lambda s: setattr(s, "configs", "all"))
        if observation.outcome is not Outcome.PASS and not wrong:
            del self.faults[known:]
            message = (
                "right with each configuration on fresh outputs, not where tuning runs them one after another: "
                f"reset_to_zero or restore_value is missing ({observation.detail.splitlines()[0]})"
            )
            launch = next(x for x in session.launches if x.config)
            self._add("autotune-side-effect", message, f"{launch.file}:{launch.line}", Outcome.WRONG, everywhere=True)

    def _each(self, name: str, tuner: Any) -> list[Observation]:
        configs, failed = list(tuner.configs), []
        for config in configs[:CONFIGS] if len(configs) > 1 else []:
            tuner.configs = [config]
            tuner.cache.clear()
            try:
                observation, _ = self._pass(Subject(self.loose, self._device), note=f"{name} with {config}: ")
            finally:
                tuner.configs = configs
            if observation.outcome is not Outcome.PASS:
                failed.append(observation)
        return failed

    def _elsewhere(self) -> None:
        """Run with inputs of the same values that lie elsewhere: one element on, and with other strides."""
        data = getattr(self.loose.module, "data", None)
        if not callable(data):
            return
        careful = bool(LAYOUTS.search(_source(self.loose.run)))
        for words, change in layouts.OFFSET + (layouts.STRIDES if careful else ()):
            known = len(self.faults)
            self._pass(Subject(self.loose, self._device, layouts.Changed(data, change)), f"with inputs {words}: ")
            self.faults[known:] = [f for f in self.faults[known:] if f.outcome in SILENT]  # to refuse them is right

    def _specs(self) -> list[Observation]:
        """Compile what the file says of its kernels, where its wrapper did not launch just that."""
        if self.target.evidence.executes:
            return []
        made = []
        for spec in self.loose.specs:
            constants = {f"{k}={v}" for k, v in spec.constants.items()}
            if any(m.kernel == spec.kernel and constants <= set(m.constants) for m in self.made):
                continue
            for kind in spec.signature.values():
                argument(kind, False)  # raises where it is no type
            note = "" if spec.name == "SPEC" else f"{spec.name}: "
            case = SpecSubject(self.loose, spec).case()
            observation, problems, _ = self._once(case, "float32", SAMPLE, Blocks(), self._limit)
            problems = [p for p in problems if not self._known(p)]
            self._take(observation, problems, note)
            made.append(observation)
        return made

    # ------------------------------------------------------------------------------------------- one pass

    def _once(
        self, case: KernelCase, dtype: str, sample: str, blocks: Blocks, opened: Callable[[Session], None]
    ) -> tuple[Observation, list[Problem], Session | None]:
        problems: list[Problem] = []
        watched = _Watched(self.adapter, opened)
        cell = Cell(case.name, dtype, sample, self.target.id, self.target.environment)
        options = Options(timing=False, root=str(self.root))
        observation = run_cell(cell, case, cast(Backend, watched), self.target, blocks, "", options, problems)
        session = watched.sessions[-1] if watched.sessions else None
        if session is not None:
            self.launches += len(session.launches)
            self._read(session, observation)
        return observation, problems, session

    def _limit(self, session: Any) -> None:
        if hasattr(session, "sample_grid"):
            session.sample_grid = PROGRAMS

    def _read(self, session: Session, observation: Observation) -> None:
        if self.target.evidence.executes:
            return
        spills = {r.hash: r.spills or 0 for r in observation.resources}
        for launch in session.launches:
            made = read(launch, self.loose.patterns, lambda file: relative(file, self.root))
            made = replace(made, spills=spills.get(launch.hash, 0)) if made is not None else None
            if made is not None and made not in self.made:
                self.made.append(made)

    def _take(self, observation: Observation, problems: Sequence[Problem], note: str = "", line: str = "") -> None:
        self._take_problems(problems, note, line)
        for w in observation.warnings:
            if w.code == "sampled-grid":
                continue
            fault = Fault(w.code, note + w.message, SEEN[observation.evidence], w.line, w.targets or (self.target.id,))
            fault = replace(fault, everywhere=not w.targets and observation.evidence is Evidence.INTERPRETED)
            if not any((f.code, f.line, f.targets) == (fault.code, fault.line, fault.targets) for f in self.faults):
                self.faults.append(fault)

    def _take_problems(self, problems: Sequence[Problem], note: str = "", line: str = "") -> None:
        for p in problems:
            everywhere = self.target.evidence is Evidence.INTERPRETED and p.outcome not in ITS_OWN
            self._add(_code(p), note + p.message, p.line or line, p.outcome, everywhere)

    def _add(self, code: str, message: str, line: str, outcome: Outcome, everywhere: bool) -> None:
        seen, line = SEEN[self.target.evidence], self._short(line)
        fault = Fault(code, message, seen, line, (self.target.id,), outcome, everywhere)
        if not any((f.code, f.line, f.outcome) == (code, fault.line, outcome) for f in self.faults):
            self.faults.append(fault)

    def _known(self, problem: Problem) -> bool:
        kind = _code(problem), problem.outcome
        return any((f.code, f.outcome) == kind and problem.message in f.message for f in self.faults)

    def _short(self, line: str) -> str:
        file, _, number = line.rpartition(":")
        return f"{relative(file, self.root)}:{number}" if file else line


def _code(problem: Problem) -> str:
    """Return the problem's own code, or what an exception's message says."""
    if problem.code != "exception":
        return problem.code
    for pattern, code in CODES:
        if re.search(pattern, problem.message):
            return code
    return problem.outcome.value.replace("_", "-")


def _dtypes(case: KernelCase) -> list[str]:
    """The first dtype of a case, and half precision."""
    return list(dict.fromkeys([case.dtypes[0], *(d for d in case.dtypes if d == "float16")]))


def _source(function: Any) -> str:
    try:
        return inspect.getsource(function)
    except (OSError, TypeError):
        return ""
