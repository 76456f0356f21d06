"""Mutants through their cells: each up to the first cell that fails, several at a time."""

from __future__ import annotations

import hashlib
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from portability import catalogue as catalogues
from portability.catalogue import Selection
from portability.harness import Harness
from portability.matrix import Matrix, Samples
from portability.model import CaseInfo, Cell, Evidence, Observation, Outcome, Word
from portability.mutation.edits import Mutant, reached


class State(Word):
    """What became of a mutant."""

    CAUGHT = "caught"
    SURVIVED = "survived"
    EQUIVALENT = "equivalent"  # argued in equivalent_mutants.toml, and not tried
    INVALID = "invalid"  # no kernel at all: the front end refuses it
    UNTRIED = "untried"  # by a run that was to run none


BUDGET = 300.0
INVALID = {Outcome.COMPILE_ERROR, Outcome.UNSUPPORTED, Outcome.HARNESS_ERROR}


@dataclass(frozen=True)
class Verdict:
    """What became of one mutant, and the cell that told."""

    mutant: Mutant
    state: State
    cell: str = ""
    outcome: str = ""
    detail: str = ""  # the failure's first line, or the reason why the mutant is equivalent
    cells: int = 0  # that were run


@dataclass(frozen=True)
class Task:
    """A mutant, the module that it stands for, and the cases that run it, by the module that exports them."""

    mutant: Mutant
    module: str
    cases: Mapping[str, str] = field(default_factory=dict)


class Trials:
    """Runs mutants with `workers` runners. To be closed."""

    def __init__(self, matrix: Matrix, folder: Path, root: Path, workers: int, budget: float = BUDGET) -> None:
        """`budget` is how long, in seconds, one mutant is tried; at least one cell of each case is."""
        self.folder, self.budget = folder, budget
        self._harnesses = [Harness(matrix, folder, root, {"timing": False}) for _ in range(workers)]
        first = self._harnesses[0]
        for harness in self._harnesses:
            harness.one_of_many = workers > 1
            harness.adopt(first.catalogue)
        self._free = list(self._harnesses)
        self._lock = threading.Lock()
        self._sound: dict[str, bool] = {}  # cell -> whether the original passes it
        self._reached: dict[tuple[Path, str, str], bool] = {}  # file, function, cell -> whether the cell runs it
        self._catches: Counter[tuple[str, str]] = Counter()  # function, cell -> how many mutants it told
        self._cells = _cells_by_case(first)
        self._early = {  # a compile of the quick sample takes a second
            c.id for cells in self._cells.values() for c in cells
            if first.catalogue.target(c).evidence is Evidence.COMPILED
            and c.sample in _quick(first.catalogue.case(c.kernel))
        }  # fmt: skip

    def learn(self, verdicts: Iterable[Verdict]) -> None:
        """Take note of which cells told mutants before: they come first for mutants of the same functions."""
        for v in verdicts:
            if v.state is State.CAUGHT:
                self._catches[v.mutant.function, v.cell] += 1

    def run(self, tasks: Iterable[Task]) -> Iterator[Verdict]:
        """Yield the verdicts as they come."""
        with ThreadPoolExecutor(len(self._harnesses)) as pool:
            yield from pool.map(self._try, tasks)

    def close(self) -> None:
        """End the runners."""
        for harness in self._harnesses:
            harness.close()

    def _try(self, task: Task) -> Verdict:
        with self._lock:
            harness = self._free.pop()
        try:
            return self._judge(harness, task)
        finally:
            with self._lock:
                self._free.append(harness)

    def _judge(self, harness: Harness, task: Task) -> Verdict:
        mutant, tried = task.mutant, 0
        deadline = time.monotonic() + self.budget
        for cell in self._in_order(task):
            if time.monotonic() > deadline and tried >= len(task.cases):
                break
            if not self._reaches(harness, task, cell):
                continue
            tried += 1
            observation = self._observe(harness, cell, mutant=self._given(task, cell, mutant.source))
            if observation.outcome is Outcome.PASS or not self._is_sound(harness, cell):
                continue
            invalid = observation.outcome in INVALID and observation.evidence is Evidence.INTERPRETED
            state = State.INVALID if invalid else State.CAUGHT
            detail = (observation.detail.splitlines() or [""])[0]
            self._catches[mutant.function, cell.id] += 1
            return Verdict(mutant, state, cell.id, observation.outcome.value, detail, tried)
        return Verdict(mutant, State.SURVIVED, cells=tried)

    def _given(self, task: Task, cell: Cell, source: str) -> Mapping[str, str]:
        """Write a module with a mistake, and say of which case's module it is a part."""
        digest = hashlib.sha256(source.encode()).hexdigest()[:16]
        file = self.folder / f"mutant_{task.mutant.file.stem}_{digest}.py"
        if not file.exists():
            file.write_text(source)
        return {"module": task.module, "file": str(file), "of_case": task.cases[cell.kernel]}

    def _reaches(self, harness: Harness, task: Task, cell: Cell) -> bool:
        """Whether a cell runs the mutant's function: asked once of a cell that told no mutant of it yet."""
        mutant = task.mutant
        key = mutant.file, mutant.function, cell.id
        if key not in self._reached:
            self._reached[key] = bool(self._catches[mutant.function, cell.id]) or (
                self._observe(harness, cell, mutant=self._given(task, cell, reached(mutant.file, mutant.function)))
                .outcome is not Outcome.PASS
            )  # fmt: skip
        return self._reached[key]

    def _in_order(self, task: Task) -> Iterator[Cell]:
        """What told most mutants of the function, the first cell of each case, the compilers', then the others."""
        by_case = [self._cells.get(name, []) for name in task.cases]
        first = {cells[0].id for cells in by_case if cells}

        def rank(cell: Cell) -> tuple[int, bool, bool]:
            told = self._catches[task.mutant.function, cell.id]
            return -told, cell.id not in first, cell.id not in self._early

        yield from sorted((c for cells in by_case for c in cells), key=rank)

    def _is_sound(self, harness: Harness, cell: Cell) -> bool:
        """Whether the original passes a cell: else it tells nothing of a mutant."""
        if cell.id not in self._sound:
            self._sound[cell.id] = self._observe(harness, cell).outcome is Outcome.PASS
        return self._sound[cell.id]

    def _observe(self, harness: Harness, cell: Cell, **more: Any) -> Observation:
        catalogue = harness.catalogue
        target, case = catalogue.target(cell), catalogue.case(cell.kernel)
        blocks, source = catalogues.blocks_of(cell, case, harness.matrix, harness.adapters, target)
        return harness.run_with(cell, target, blocks, source, **more)


def _cells_by_case(harness: Harness) -> Mapping[str, Sequence[Cell]]:
    """The cells of the interpreter, of each case the quick one at its first dtype first.

    Every sample at its first dtype, and the quick one at the others: what a mistake does at one dtype, it does at all,
    unless it is a mistake about dtypes. Last come cells for a target of each compiler, since an interpreter takes
    kernels that none of them does: of every sample, since the quick one need not launch every kernel.
    """
    selection = Selection(samples=Samples.FULL, timing=False)
    found: dict[str, list[Cell]] = {}
    catalogue = harness.catalogue
    compilers = {t.backend: t.id for t in catalogue.targets if t.evidence is Evidence.COMPILED}  # the last of each
    compiled: dict[tuple[str, str, str], Cell] = {}
    for cell in catalogues.cells(catalogue, harness.matrix, selection, harness.adapters):
        if catalogue.target(cell).evidence is Evidence.INTERPRETED:
            found.setdefault(cell.kernel, []).append(cell)
        elif cell.target in compilers.values():
            compiled.setdefault((cell.kernel, cell.target, cell.sample), cell)
    ranked = {name: _ranked(cells, catalogue.case(name)) for name, cells in found.items()}
    return {n: cells + [c for (kernel, *_), c in compiled.items() if kernel == n] for n, cells in ranked.items()}


def _quick(case: CaseInfo) -> set[str]:
    return {s.name for s in case.samples if s.quick}


def _ranked(cells: Sequence[Cell], case: CaseInfo) -> list[Cell]:
    quick, first = _quick(case), cells[0].dtype
    dtypes = {c.sample: c.dtype for c in reversed(cells)}  # the first of each sample
    taken = [c for c in cells if c.dtype == dtypes[c.sample] or c.sample in quick]
    return sorted(taken, key=lambda c: (catalogues.AS in c.sample, c.dtype != first, c.sample not in quick))
