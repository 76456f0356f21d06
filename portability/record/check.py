"""Every distinct launch of a recording, compiled for every target: in parallel, each where it may abort or hang.

A process imports the recorded modules for one target and is then ended, since a module may decide by the device that it
sees. What was compiled before is in the cache, with what the compiler said of it.
"""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path

from portability import provenance
from portability.catalogue import from_text
from portability.device import DeviceBackend
from portability.harness import CATALOGUE_LIMIT, Harness, HarnessError
from portability.matrix import Matrix, MatrixError
from portability.model import DEFAULT_ENVIRONMENT, Cell, Evidence, Observation, Outcome, Standing, Target, to_json
from portability.pool import RunnerDiedError, RunnerTimedOutError, temporary_folder, unavailable
from portability.record.cases import Launched, first_of_each, infos, launched, names_of, small
from portability.record.model import Call, Recording, compiler_of, merge
from portability.results import Run, Selection, read_run
from portability.tomltable import nearest
from portability.writer import Writer

UNTRIED = Outcome.UNAVAILABLE
END_LIMIT = 30.0  # seconds for a process to end by itself


@dataclass(frozen=True)
class Request:
    """What is asked of a check."""

    targets: tuple[str, ...] = ()  # patterns; empty means every one that Triton's own compilers reach
    limit: float = 300.0  # seconds that one launch may compile for one target
    configs: int = 1  # of a tuned kernel, how many must pass; 0 tries every one
    kernels: tuple[str, ...] = ()  # patterns; empty means every one
    workers: int = 1
    interpret: bool = False  # whether launches that are small enough are interpreted too
    first: bool = False  # whether of each kernel its first launch alone is checked
    resume: bool = False  # whether what the results have already is left out


def check(
    recordings: Sequence[Recording], request: Request, results: Path, matrix: Matrix | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> Run:  # fmt: skip
    """Compile each launch for each target, write `results` as it goes on, and return what is in it.

    A program may launch other blocks where it finds another vendor's device. Of several recordings, a target takes the
    launches that were made for a target of its compiler ("cuda", "hip"), and those of all where there is no such one.

    Raises `ValueError` where a pattern of `request` matches nothing, and for a recording of nothing; `ResultsError`
    where `results` is to be gone on with and was made with other versions.
    """
    matrix = matrix or Matrix()
    rules = matrix.expectations  # they name recorded kernels, of which the catalogue knows nothing
    matrix = replace(matrix, expectations=(), limits={**matrix.limits, "compile": request.limit})
    with temporary_folder() as folder:
        first = Harness(matrix, folder, Path.cwd(), {})
        try:
            learn(first, request.targets)
            targets = _targets(first, request)
            work = _Work(recordings, targets, request)
            header = provenance.header_of(first, Selection(targets=request.targets, cells=work.total), 0)
            claims = {t.id: tuple(d for d in work.dtypes if first.adapters[t.backend].claims(t.id, d)) for t in targets}
            header = replace(
                header, cases=tuple(infos(work.launches)), targets=tuple(targets), claims=claims, expectations=rules
            )
            with Writer.resume(results, header) if request.resume else Writer(results, header) as writer:
                work.leave_out(writer.observations)
                work.run(first, writer, say)
                writer.finish(provenance.now())
        finally:
            first.close()
    return read_run(results)


def exit_code(run: Run) -> int:
    """Return 0 where everything compiles, 1 where something fails that no rule declares, 2 where nothing was tried.

    A run of the matrix does not fail by a package's kernel; a check of that package does.
    """
    tried = [(o, v) for o, v in zip(run.observations, run.verdicts(), strict=True) if o.outcome is not UNTRIED]
    if not tried:
        return 2
    return int(any(o.outcome is not Outcome.PASS and v.standing is not Standing.AS_EXPECTED for o, v in tried))


def recorded_for(recordings: Sequence[Recording], target: Target) -> Recording:
    """Return what a target is given: of each program what was recorded for its compiler, else all of it."""
    compiler = compiler_of(target.id)
    programs: dict[tuple[str, ...], list[Recording]] = {}
    for recording in recordings:
        programs.setdefault(recording.program, []).append(recording)
    return merge(
        r for some in programs.values() for r in [r for r in some if compiler_of(r.target) == compiler] or some
    )


def _launches(recording: Recording, target: Target, names: Mapping[tuple[str, str], str]) -> list[Launched]:
    found = launched(recording, names)
    return [x for x in found if small(x)] if target.evidence is Evidence.INTERPRETED else found


def _wanted(launches: Sequence[Launched], request: Request) -> list[Launched]:
    """Return the launches of the kernels that are asked for, by their whole name or without the package's."""
    if not launches:
        raise ValueError("no launches were recorded")
    patterns = request.kernels
    names = {x.name: (x.name, x.name.partition(":")[2]) for x in launches}
    for pattern in patterns:
        if not any(fnmatchcase(n, pattern) for both in names.values() for n in both):
            raise ValueError(f"--kernel: {pattern!r} is none that was recorded; {nearest(pattern, sorted(names))}")
    some = [x for x in launches if any(fnmatchcase(n, p) for n in names[x.name] for p in patterns or ("*",))]
    return first_of_each(some) if request.first else some


def learn(harness: Harness, targets: Sequence[str]) -> None:
    """Ask for the targets of this environment alone where they are all that is wanted: starting others takes long."""
    here = [
        a for a in harness.adapters.values() if isinstance(a, DeviceBackend) or a.environment == DEFAULT_ENVIRONMENT
    ]
    known = {t for a in here for t in a.targets}
    if harness.matrix.environments or not all(any(fnmatchcase(t, p) for t in known) for p in targets):
        return
    asked = {"op": "catalogue", "ask": [a.name for a in here]}
    reply = harness.ask(DEFAULT_ENVIRONMENT, asked, CATALOGUE_LIMIT)
    if "failure" in reply:
        raise HarnessError(reply["failure"])
    harness.adopt(from_text(reply["catalogue"]))


def _targets(harness: Harness, request: Request) -> list[Target]:
    """Return the targets that are compiled for; a device that is here is one of them, and nothing runs on it."""
    every = harness.catalogue.targets
    compiled = [t for t in every if isinstance(harness.adapters[t.backend], DeviceBackend)]
    names = {t.id for t in every}
    for pattern in request.targets:
        if not any(fnmatchcase(n, pattern) for n in names):
            raise MatrixError(f"--target: {pattern!r} is nothing here; {nearest(pattern, sorted(names))}")
    some = [t for t in every if any(fnmatchcase(t.id, p) for p in request.targets)] if request.targets else compiled
    if request.interpret:
        some += [t for t in every if t.evidence is Evidence.INTERPRETED and t not in some]
    return [replace(t, evidence=Evidence.COMPILED, device="") if t.evidence is Evidence.RAN else t for t in some]


class _Work:
    """A queue a target; a worker takes a target, and where none is left helps with the longest queue."""

    def __init__(self, recordings: Sequence[Recording], targets: Sequence[Target], request: Request) -> None:
        self.request = request
        self._recorded = {(t.id, t.environment): recorded_for(recordings, t) for t in targets}
        names = names_of(c for r in recordings for c in r.launches)
        wanted = ((t, _wanted(_launches(self._recording(t), t, names), request)) for t in targets)
        self._queues = [(t, deque(launches)) for t, launches in wanted]
        self.launches = list({(x.name, x.sample): x for _, queue in self._queues for x in queue}.values())
        self.dtypes = tuple(dict.fromkeys(x.dtype for x in self.launches))
        self.total = sum(len(queue) for _, queue in self._queues)
        self._free = list(self._queues)
        self._lock = threading.Lock()
        self._done = 0
        self._harnesses: list[Harness] = []
        self._stopped = False

    def leave_out(self, seen: Collection[Cell]) -> None:
        """Leave out the cells that an earlier check has seen."""
        self._queues = [(t, deque(x for x in queue if x.cell(t) not in seen)) for t, queue in self._queues]
        self._free = [(t, queue) for t, queue in self._queues if queue]
        self._done = self.total - sum(len(queue) for _, queue in self._queues)

    def run(self, first: Harness, writer: Writer, say: Callable[[str], None]) -> None:
        """Do all of it with `request.workers` processes side by side."""

        def work(number: int) -> None:
            harness = first if number == 0 else Harness(first.matrix, first.folder, first.root, {})
            harness.one_of_many = True
            self._harnesses.append(harness)
            try:
                if number:
                    harness.adopt(first.catalogue)
                self._serve(harness, writer, say)
            finally:
                if number:
                    harness.close()

        workers = max(1, min(self.request.workers, self.total))
        with ThreadPoolExecutor(workers) as pool:
            try:
                for done in [pool.submit(work, i) for i in range(workers)]:
                    done.result()
            except BaseException:  # an interruption too: what is written stays, and no worker takes more
                self._stop()
                raise

    def _stop(self) -> None:
        """Take no more, and end what is being compiled: nobody waits for it, and what comes of it is not written."""
        with self._lock:
            self._stopped = True
            self._free.clear()
            for _, queue in self._queues:
                queue.clear()
        for harness in self._harnesses:
            harness.close()

    def _serve(self, harness: Harness, writer: Writer, say: Callable[[str], None]) -> None:
        while (batch := self._batch()) is not None:
            target, queue = batch
            ended = True
            while (taken := self._take(queue)) is not None:
                launch, ended = taken
                observation = self._observe(harness, launch, target, ended)
                with self._lock:
                    if self._stopped:
                        return
                    writer.write(observation)
                    self._done += 1
                    say(f"{self._done} of {self.total}: {target.id}")
            if not ended and target.evidence is not Evidence.NONE:  # another worker took the last of the queue
                with contextlib.suppress(RunnerDiedError, RunnerTimedOutError):  # then it has ended too
                    harness.ask(target.environment, {"op": "launch", "calls": []}, END_LIMIT)

    def _batch(self) -> tuple[Target, deque[Launched]] | None:
        with self._lock:
            if self._free:
                return self._free.pop(0)
            longest = max(self._queues, key=lambda q: len(q[1]), default=None)
            return longest if longest is not None and longest[1] else None

    def _take(self, queue: deque[Launched]) -> tuple[Launched, bool] | None:
        with self._lock:
            return (queue.popleft(), not queue) if queue else None

    def _recording(self, target: Target) -> Recording:
        return self._recorded[target.id, target.environment]

    def _observe(self, harness: Harness, launch: Launched, target: Target, last: bool) -> Observation:
        return observe(harness, launch, target, self._recording(target), self.request.configs, last)


def observe(
    harness: Harness, launch: Launched, target: Target, recording: Recording, configs: int = 1, last: bool = False,
    against: Call | None = None,
) -> Observation:  # fmt: skip
    """Return what one launch of `recording` comes to on `target`; after the `last` one its process is ended.

    Where it is interpreted, it must give what the launch `against` gives.
    """
    more = {} if against is None else {"against": to_json(against)}
    if target.evidence is Evidence.NONE:
        return unavailable(launch.cell(target), target)
    seen = harness.run_with(
        launch.cell(target), target, {}, "", op="launch", calls=[to_json(c) for c in launch.calls],
        recording=to_json(replace(recording, launches=(), tests=())), configs=configs, root=str(harness.root),
        last=last, **more,
    )  # fmt: skip
    if target.evidence is Evidence.INTERPRETED and seen.outcome is Outcome.TIMEOUT and not seen.seconds:
        why = f"not interpreted: {seen.detail}"  # too much to do for an interpreter, which is no fault
        return replace(seen, evidence=Evidence.NONE, outcome=Outcome.UNAVAILABLE, stage="open", detail=why)
    return seen
