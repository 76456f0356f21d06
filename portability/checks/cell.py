"""One file on one target, in a runner: its `run` as a cell, its specs, its tuned configurations, other layouts.

Where values are computed, `run` is called once more for each tuned configuration on fresh outputs, and with inputs of
the same values that lie elsewhere in memory.
"""

from __future__ import annotations

import contextlib
import inspect
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import torch

from portability import backend as backends
from portability.backend import Backend, Launch, Problem, Session
from portability.checks import layouts
from portability.checks.assembly import read
from portability.checks.collect import Collector, definition
from portability.checks.importing import imported
from portability.checks.loose import Loose, UnreadableError, load
from portability.checks.model import Answer, Fault, Made, Seen
from portability.checks.pretend import pretend
from portability.checks.subject import SAMPLE, SpecSubject, Subject, argument
from portability.kernel import Blocks, KernelCase, relative
from portability.memory import Memory, unchanged
from portability.model import Cell, Evidence, Observation, Outcome, Target, from_json, to_json
from portability.run import Options, run_cell

PROGRAMS = 1024  # the most of one launch that are interpreted
CONFIGS = 12  # the most of one tuned kernel that are run each by itself
PATIENCE = 20.0  # seconds: what took longer is not run again in other layouts
# A wrapper that looks at an input's layout means to take any, or to refuse it.
LAYOUTS = re.compile(r"is_contiguous|\.contiguous\(")
STRIDES = re.compile(r"\.stride\([^)]*\)\s*[!=]=")
SILENT = {Outcome.WRONG, Outcome.OUT_OF_BOUNDS, Outcome.RACE, Outcome.UNDEFINED_VALUE}
# As `portability.compare` and `portability.attempts` name an element.
ELEMENT = re.compile(r"\boutput ?(\d*)(?:\[([\d, ]*)\])?")


def check(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the file `request["file"]` does on `request["target"]`, an `Answer` as JSON's types."""
    target = from_json(Target, request["target"])
    started = time.perf_counter()
    _forget_others()
    try:
        adapter = backends.discover(tuple(request.get("backends", ())))[target.backend]
        with imported(Path(request["file"]), adapter, target) as (loose, refused):
            checked = _Check(loose, adapter, target, Path(request["root"]))
            if refused is not None and target.evidence is Evidence.INTERPRETED:
                message = f"where there is no device {refused}"
                checked.found.refuse("not-imported", message, refused.line, Outcome.LAUNCH_ERROR)
            answer = checked.answer()
    except UnreadableError as error:
        file, _, number = error.line.rpartition(":")
        line = f"{relative(file, Path(request['root']))}:{number}" if number else ""
        answer = Answer(
            target.evidence, Outcome.HARNESS_ERROR, broken=str(error), broken_line=line, of_triton=error.of_triton,
            at_import=error.at_import,
        )  # fmt: skip
    made: dict[str, Any] = to_json(replace(answer, seconds=round(time.perf_counter() - started, 3)))
    return made


def _forget_others() -> None:
    """Put back what a file that was checked before in this process may have set for good."""
    torch.set_default_dtype(torch.float32)
    torch.set_default_device(None)
    allocation = sys.modules.get("triton.runtime._allocation")
    if allocation is not None:
        allocation.set_allocator(allocation.NullAllocator())


class Watched:
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
        self.found = Collector(target, root)
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
        faults = tuple(self.found.faults)
        return Answer(self.target.evidence, outcome, faults, tuple(self.made), detail, launches=self.launches)

    @property
    def _device(self) -> str:
        return self.adapter.tensor_device(self.target)

    # ------------------------------------------------------------------------------------------- the passes

    def _case(self, case: KernelCase, dtype: str) -> Observation:
        sample = next((s for s in case.samples if s.quick), case.samples[0])
        blocks = backends.look_up_blocks(self.adapter, case.name, self.target.id, dtype, case.blocks)
        observation, problems, session = self._once(case, dtype, sample.name, blocks.blocks, _limit)
        self.found.take(observation, problems, session)
        return observation

    def _run(self) -> list[Observation]:
        if self.loose.run is None:
            return []
        observation, session = self._pass(lambda: Subject(self.loose, self._device))
        if session is not None and observation.evidence.executes:
            self._tuned(observation, session)
            if observation.outcome in (*SILENT, Outcome.NONDETERMINISTIC) and self._keeps_state():
                message = "the second of two equal calls gives another result: a workspace, lock or counter is kept"
                self.found.replace_values("kept-state", message, session.launches[-1], Outcome.NONDETERMINISTIC)
            if observation.outcome is Outcome.PASS and observation.seconds < PATIENCE:
                self._elsewhere()
                self._otherwise(session)
        return [observation]

    def _pass(self, make: Callable[[], Subject], note: str = "") -> tuple[Observation, Session | None]:
        """Run the file once under all checks, and take what is found; `note` is added to its messages."""
        subject = make()

        def opened(session: Session) -> None:
            _limit(session)
            subject.watch(session)

        with self._device_that_is_not_here():
            observation, problems, session = self._once(subject.case(), "float32", SAMPLE, Blocks(), opened)
        if observation.outcome is Outcome.HARNESS_ERROR and observation.stage in ("reference", "compare", "inputs"):
            raise UnreadableError(observation.detail.split("\n")[0].removeprefix("UnreadableError: "))
        if subject.nothing_to_compute():
            problems = [p for p in problems if p.code != "nothing-launched"]
            observation = observation if problems else replace(observation, outcome=Outcome.PASS, detail="")
        self.found.take(observation, problems, session, note, subject.line, lambda m: self._stored_at(make(), m))
        return observation, session

    def _device_that_is_not_here(self) -> contextlib.AbstractContextManager[None]:
        """Where a target is only compiled for, a wrapper may still ask for its device."""
        if self.target.evidence.executes or self.adapter.device == "cpu":
            return contextlib.nullcontext()
        return pretend(self.adapter, self.target.id)

    def _stored_at(self, subject: Subject, message: str) -> str:
        """Return the line that stored the element that a message names, "" where it cannot be told."""
        m = ELEMENT.search(message)
        if m is None:
            return ""
        output, element = int(m[1] or 0), tuple(int(n) for n in (m[2] or "").split(",") if n.strip())
        with contextlib.suppress(Exception), self.adapter.open(self.target) as session:  # the fault stands without it
            _limit(session)
            session.vary(0, 0)
            return subject.locate(session, output, element)
        return ""

    def _keeps_state(self) -> bool:
        """Whether `run`, called twice under the same conditions, returns something else the second time.

        It begins with nothing kept: from a file that is imported anew.
        """
        with contextlib.suppress(Exception), self.adapter.open(self.target) as session:  # what raises is told already
            subject = Subject(load(self.loose.path), self._device)
            _limit(session)
            subject.watch(session)
            made: list[list[torch.Tensor]] = []
            for _ in range(2):
                session.vary(0, 0)
                with Memory(0, 0):
                    made.append([t.clone() for t in subject.operator()])
            return not all(unchanged(a, b) for a, b in zip(*made, strict=True))
        return False

    def _tuned(self, first: Observation, session: Session) -> None:
        """Run each configuration by itself on fresh outputs; `first` ran them all in turn, as tuning does."""
        if not any(launch.config for launch in session.launches):
            return
        wrong = [o for name, tuner in self.loose.tuners().items() for o in self._each(name, tuner)]
        if first.outcome in SILENT and not wrong:
            message = (
                "right with each configuration on fresh outputs, not where tuning runs them one after another: "
                f"reset_to_zero or restore_value is missing ({first.detail.splitlines()[0]})"
            )
            tuned = next(launch for launch in session.launches if launch.config)
            self.found.replace_values("autotune-side-effect", message, tuned)

    def _each(self, name: str, tuner: Any) -> list[Observation]:
        """Return what failed."""
        configs, failed = list(tuner.configs), []
        for config in configs[:CONFIGS] if len(configs) > 1 else []:
            tuner.configs = [config]
            tuner.cache.clear()
            try:
                observation, _ = self._pass(lambda: Subject(self.loose, self._device), f"{name} with {config}: ")
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
        asked = self._asked(data)
        for words, change in layouts.OFFSET + (layouts.STRIDES if asked else ()):
            known = len(self.found.faults)
            moved = layouts.Changed(data, change, asked if (words, change) in layouts.STRIDES else None)
            self._pass(lambda moved=moved: Subject(self.loose, self._device, moved), f"with inputs {words}: ")  # type: ignore[misc]
            new = self.found.faults[known:]
            self.found.faults[known:] = [f for f in new if f.outcome in SILENT]  # to refuse them is right

    def _asked(self, data: Callable[[], Any]) -> set[int]:
        """Return the inputs, by their number, whose layout the wrapper looks at."""
        source = _source(self.loose.run)
        asked = layouts.Asked(data, bool(STRIDES.search(source)))
        if STRIDES.search(source) or LAYOUTS.search(source):
            with self.adapter.open(self.target) as session, asked:
                _limit(session)
                Subject(self.loose, self._device, asked.data).operator()
        return asked.found

    def _otherwise(self, first: Session) -> None:
        """Run with the arithmetic of targets that round otherwise; what is wrong then depends on the target."""
        for variant in getattr(first, "variants", ()):
            known, found = list(self.found.faults), []
            subject = Subject(self.loose, self._device)

            def opened(session: Any, variant: str = variant, subject: Subject = subject) -> None:
                _limit(session)
                session.vary_arithmetic(variant)
                subject.watch(session)

            observation, _, session = self._once(subject.case(), "float32", SAMPLE, Blocks(), opened)
            if session is not None and observation.outcome is Outcome.WRONG:
                found = [f for f in [cast(Any, session).varied()] if f is not None]
            self.found.faults = known
            for line, words, targets in found:
                message = f"{words} ({observation.detail.splitlines()[0]})"
                self.found.faults.append(Fault(variant, message, Seen.INTERPRETED, line, targets))

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
            observation, problems, session = self._once(case, "float32", SAMPLE, Blocks(), _limit)
            self.found.take(observation, [p for p in problems if not self.found.knows(p)], session, note)
            made.append(observation)
        return made

    # ------------------------------------------------------------------------------------------- one pass

    def _once(
        self, case: KernelCase, dtype: str, sample: str, blocks: Blocks, opened: Callable[[Session], None]
    ) -> tuple[Observation, list[Problem], Session | None]:
        problems: list[Problem] = []
        watched = Watched(self.adapter, opened)
        cell = Cell(case.name, dtype, sample, self.target.id, self.target.environment)
        options = Options(timing=False, root=str(self.root))
        observation = run_cell(cell, case, cast(Backend, watched), self.target, blocks, "", options, problems)
        session = watched.sessions[-1] if watched.sessions else None
        if session is not None:
            self.launches += len(session.launches)
            self._read(session, observation)
        return observation, problems, session

    def _read(self, session: Session, observation: Observation) -> None:
        if self.target.evidence.executes:
            return
        for launch in session.launches:
            if not launch.error and _wants_memory(launch):
                line = f"{relative(launch.file, self.root)}:{definition(launch)}"
                message = f"{launch.kernel}: needs memory of its own at the launch: triton.set_allocator was not called"
                self.found.refuse("no-allocator", message, line, Outcome.LAUNCH_ERROR)
            made = read(launch, self.loose.patterns, lambda file: relative(file, self.root))
            if made is not None:
                line = f"{relative(launch.file, self.root)}:{definition(launch)}"
                made = replace(made, spills=_spills(launch, observation), line=line)
                self.made += [made] if made not in self.made else []


def _limit(session: Any) -> None:
    if hasattr(session, "sample_grid"):
        session.sample_grid = PROGRAMS


def _spills(launch: Launch, observation: Observation) -> int:
    """Return the bytes a thread of a launch spills; resources are recorded under the beginning of its hash."""
    own = (r.spills or 0 for r in observation.resources if r.hash and launch.hash.startswith(r.hash))
    return next(own, 0)


def _wants_memory(launch: Launch) -> bool:
    """Whether Triton's launcher would ask an allocator for memory that nobody has set."""
    allocation = sys.modules.get("triton.runtime._allocation")
    size = getattr(getattr(launch.compiled, "metadata", None), "global_scratch_size", 0)
    return bool(size) and isinstance(
        allocation and allocation._allocator.get(), getattr(allocation, "NullAllocator", ())
    )


def _dtypes(case: KernelCase) -> list[str]:
    """The first dtype of a case, and half precision."""
    return list(dict.fromkeys([case.dtypes[0], *(d for d in case.dtypes if d == "float16")]))


def _source(function: Any) -> str:
    try:
        return inspect.getsource(function)
    except (OSError, TypeError):
        return ""
