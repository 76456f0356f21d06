"""From a cell to a file that was run: find the failure, make it smaller, write it, see that the file shows it.

Neither torch nor triton is imported: a cell and its file are run in processes of their own.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from portability import __version__
from portability import catalogue as catalogues
from portability.harness import Harness
from portability.model import DEFAULT_ENVIRONMENT, CaseInfo, Cell, Evidence, Observation, Outcome, Target, to_json
from portability.pool import SCRUBBED, RunnerDiedError, RunnerTimedOutError
from portability.reproducer.shrink import Attempt, Known, Shrinker, signature
from portability.results import Run
from portability.tomltable import nearest

RUN_LIMIT = 120.0  # seconds that the written file may take
FAILURES = {o for o in Outcome if o not in (Outcome.PASS, Outcome.IGNORED, Outcome.UNSUPPORTED, Outcome.UNAVAILABLE)}
# How an execution's failure is shown, the first way that works.
BY_OUTCOME: Mapping[Outcome, tuple[str, ...]] = {
    Outcome.WRONG: ("values",),
    Outcome.OUT_OF_BOUNDS: ("memory", "values"),
    Outcome.RACE: ("order", "values"),
    Outcome.NONDETERMINISTIC: ("order",),
    Outcome.UNDEFINED_VALUE: ("undefined", "memory", "values"),
    Outcome.COMPILE_ERROR: ("raises",),
    Outcome.LAUNCH_ERROR: ("raises",),
    Outcome.OUT_OF_RESOURCES: ("raises",),
    Outcome.TIMEOUT: ("hangs",),
    Outcome.CRASH: ("values",),
}
WRITTEN = "was written by the operator"  # in the words of a wrong cell whose inputs changed

Say = Callable[[str], None]


@dataclass(frozen=True)
class Reproducer:
    """What came of it."""

    file: Path
    shown: bool  # whether the file, run here, shows the failure
    said: str  # what it printed
    attempt: Attempt
    tried: int
    seen: Observation


def recorded(runs: list[Run], cell_id: str) -> Observation | None:
    """Return the newest observation of a cell among runs."""
    found = [o for run in runs for o in run.observations if o.cell.id == cell_id]
    return found[-1] if found else None


def find(harness: Harness, cell_id: str) -> Cell:
    """Return the cell of that id. Raises `ValueError` with the nearest ones."""
    known: list[str] = []
    for case in harness.catalogue.cases:
        if not cell_id.startswith(f"{case.name}-"):
            continue
        for target in harness.catalogue.targets:
            for cell in _cells(case, target, harness.catalogue.targets):
                if cell.id == cell_id:
                    return cell
                known.append(cell.id)
    if known:
        raise ValueError(f"no cell {cell_id!r}; {nearest(cell_id, known)}")
    names = [c.name for c in harness.catalogue.cases]
    raise ValueError(f"no cell {cell_id!r}: of its kernel, {nearest(cell_id.partition('-')[0], names)}")


def _cells(case: CaseInfo, target: Target, targets: Sequence[Target]) -> Iterator[Cell]:
    """Yield the cells of a case and a target; an interpreter's also with the blocks of every other target."""
    borrowed = [t.id for t in targets if target.evidence is Evidence.INTERPRETED and t.id != target.id]
    for dtype in case.dtypes:
        for sample in (s.name for s in case.samples if not s.dtypes or dtype in s.dtypes):
            for name in (sample, *(f"{sample}{catalogues.AS}{other}" for other in borrowed)):
                yield Cell(case.name, dtype, name, target.id, target.environment)


class Session:
    """Reproduces one cell. `say` is told each step."""

    def __init__(self, harness: Harness, cell: Cell, budget: float, say: Say) -> None:
        self.harness, self.cell, self.budget, self.say = harness, cell, budget, say
        self.case, self.target = harness.catalogue.case(cell.kernel), harness.catalogue.target(cell)
        self.blocks, self.source = catalogues.blocks_of(cell, self.case, harness.matrix, harness.adapters, self.target)

    def reproduce(self, file: Path) -> Reproducer:
        """Write the file. Raises `ValueError` where the cell does not fail here, or its failure cannot be written."""
        if self.target.evidence is Evidence.NONE:
            raise ValueError(f"{self.cell.id}: {self.target.why}; {self.target.remedy}")
        start = self._start()
        seen = self._observe(start)
        if seen.outcome not in FAILURES:
            how = seen.detail if seen.outcome is Outcome.UNAVAILABLE else seen.evidence
            raise ValueError(f"{self.cell.id}: {seen.outcome} here ({how}): there is nothing to reproduce")
        self.say(f"{self.cell.id}: {seen.outcome}{f' at {seen.line}' if seen.line else ''}")
        shrinker = Shrinker(self._observe, signature(seen), self.budget, self.say)
        attempt = shrinker.smallest(start, self._known(start)) if self.budget > 0 else start
        last = self._observe(attempt)
        return self._written(file, attempt, last, shrinker.tried)

    # ------------------------------------------------------------------------------------------------ attempts

    def _start(self) -> Attempt:
        """Return the failure as it is asked for."""
        return Attempt(self.cell.dtype, self.cell.sample.partition(catalogues.AS)[0], dict(self.blocks))

    def _observe(self, attempt: Attempt) -> Observation:
        cell = replace(self.cell, dtype=attempt.dtype, sample=attempt.sample)
        more = {"change": attempt.change} if attempt.sizes or attempt.values != "own" else {}
        return self.harness.run_with(cell, self.target, attempt.blocks, self.source, **more)

    def _known(self, start: Attempt) -> Known:
        reply = self._ask(start, {"what": "shapes"})
        return Known(self.case.dtypes, reply["shapes"], self.target.evidence.executes)

    def _subject(self, attempt: Attempt) -> dict[str, Any]:
        """Return what tells the runner of the kernel, beside the cell."""
        return {}

    def _ask(self, attempt: Attempt, more: Mapping[str, Any]) -> dict[str, Any]:
        cell = replace(self.cell, dtype=attempt.dtype, sample=attempt.sample)
        request = {
            "op": "reproduce", "cell": to_json(cell), "target": to_json(self.target), "blocks": dict(attempt.blocks),
            "options": self.harness.options, "change": attempt.change, **self._subject(attempt), **more,
        }  # fmt: skip
        reply = self.harness.ask(cell.environment, request, self.harness.limit(cell, self.target))
        if "failure" in reply:
            raise RuntimeError(f"{cell.id}: {reply['failure']}\n{reply['traceback']}")
        return reply

    # ---------------------------------------------------------------------------------------------- the file

    def _written(self, file: Path, attempt: Attempt, seen: Observation, tried: int) -> Reproducer:
        """Write the file in the first way that shows the failure; if none does, the first one, and say so in it."""
        ways = self._ways(seen)
        first: Reproducer | None = None
        for way in ways:
            self._draft(file, attempt, seen, way, "")
            shown, said = _show(file, seen, self.target)
            made = Reproducer(file, shown, said, attempt, tried, seen)
            if shown:
                return made
            first = first or made
        assert first is not None
        if self.target.evidence is Evidence.RAN:
            return first
        self._draft(file, attempt, seen, ways[0], NOT_SHOWN if self.target.evidence.executes else NOT_COMPILED)
        return first

    def _ways(self, seen: Observation) -> tuple[str, ...]:
        if not self.target.evidence.executes:
            return ("compile",)
        if seen.outcome is Outcome.WRONG and WRITTEN in seen.detail:
            return ("changed",)
        if self.target.evidence is Evidence.RAN:  # the other ways are of memory on the CPU, or of an interpreter
            return ("values", "raises")
        return BY_OUTCOME.get(seen.outcome, ("raises",))

    def _draft(self, file: Path, attempt: Attempt, seen: Observation, way: str, note: str) -> None:
        file.unlink(missing_ok=True)
        heading = self._heading(file, attempt, seen, note)
        self.harness.close()  # a new process: what is compiled in it is compiled for the first time
        try:
            reply = self._ask(attempt, {"what": "file", "path": str(file.resolve()), "heading": heading, "way": way})
        except (RunnerDiedError, RunnerTimedOutError):  # the failure itself: the file was written before it
            reply = {"unwritable": ""}
        if reply["unwritable"] or not file.exists():
            raise ValueError(
                f"{self.cell.id}: {reply['unwritable'] or 'the process ended before anything was written'}"
            )

    def _heading(self, file: Path, attempt: Attempt, seen: Observation, note: str) -> str:
        words = seen.detail.replace("\\", "/").replace('"""', "'''").splitlines()[:6]
        versions = ", ".join(f"{k} {v}" for k, v in seen.versions.items())
        where = {Evidence.RAN: f"run on {seen.device}", Evidence.INTERPRETED: "interpreted on the CPU"}
        how = where.get(self.target.evidence, f"compiled for {self.target.heading} ({self.target.id}), with no GPU")
        smaller = [f"{k} became {v}" for k, v in attempt.sizes.items()]
        smaller += [f"{k}={v}" for k, v in attempt.blocks.items()] if attempt.blocks else []
        lines = [
            f"{self.case.name}, {attempt.dtype}: {str(seen.outcome).replace('_', ' ')}", "",
            *(line for w in words for line in textwrap.wrap(w, 110, subsequent_indent="    ") or [""]), "",
            f"Seen {how}, with {versions}.",
            *textwrap.wrap(f"Sample {attempt.sample}: {', '.join(smaller)}." if smaller else "", 110), "",
            f"    python {file.name}", "",
            "ends with exit code 1 while the failure is there, and 0 once it is gone.",
            *(["", *textwrap.wrap(note, 110)] if note else []), "",
            f"Written by triton-portability {__version__}.",
        ]  # fmt: skip
        return "\n".join(lines)


NOT_SHOWN = (
    "Triton's own interpreter does not show this failure, in this file or in another way that was tried: the checked "
    "interpreter of triton-portability does. The file holds the launch as it was made, and ends with exit code 0."
)
NOT_COMPILED = (
    "Compiling does not show this failure: it is one of the launch, which needs the device. The file holds what was "
    "compiled, and ends with exit code 0."
)
ENDED = {Outcome.CRASH, Outcome.OUT_OF_BOUNDS, Outcome.UNDEFINED_VALUE, Outcome.COMPILE_ERROR}  # by a signal, perhaps


def _show(file: Path, seen: Observation, target: Target) -> tuple[bool, str]:
    """Run the file as a user would; return whether it shows the failure, and what it printed."""
    kept = {k: v for k, v in os.environ.items() if not SCRUBBED.match(k) and k != "PYTHONPATH"}
    with tempfile.TemporaryDirectory() as folder:
        try:
            done = subprocess.run(
                [sys.executable, str(file.resolve())], cwd=folder, env={**kept, "TMPDIR": folder}, text=True,
                capture_output=True, errors="replace", timeout=RUN_LIMIT, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return seen.outcome is Outcome.TIMEOUT, f"no end after {RUN_LIMIT:g} s"
    broken = done.returncode not in (0, 1) or "Traceback" in done.stderr
    said = (done.stdout + (done.stderr[-2000:] if broken else "")).strip()
    if target.environment != DEFAULT_ENVIRONMENT:
        said = f"{said}\n(run with the default environment's Triton)"
    ended = done.returncode < 0 and seen.outcome in ENDED
    if ended:
        said = f"{said}\nended by {signal.Signals(-done.returncode).name}".strip()
    return ended or (done.returncode == 1 and not broken), said
