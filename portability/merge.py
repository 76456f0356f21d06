"""Several runs as one: the newest observation per cell, Triton minor version and device; never the best."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from portability.model import CaseInfo, Cell, Evidence, Observation, Outcome, Target, Verdict
from portability.results import Run

Key = tuple[Cell, str, str]  # cell, Triton's minor version, the device's name


@dataclass(frozen=True)
class Entry:
    """An observation with its verdict and the run that it is from."""

    observation: Observation
    verdict: Verdict
    run: Run = dataclasses.field(repr=False)

    @property
    def cell(self) -> Cell:
        """The observation's cell."""
        return self.observation.cell

    @property
    def triton(self) -> str:
        """Triton's minor version, "3.9"; empty where it is not known."""
        return ".".join(self.observation.versions.get("triton", "").split(".")[:2])

    @property
    def key(self) -> Key:
        """What makes a newer observation replace this one."""
        return self.cell, self.triton, self.observation.device

    @property
    def when(self) -> str:
        """The time of the observation, else the start of its run; ISO 8601 in UTC, which sorts as text."""
        return self.observation.when or self.run.header.provenance.started

    @property
    def tried(self) -> bool:
        """Whether anything was there to try it."""
        return self.observation.outcome is not Outcome.UNAVAILABLE


@dataclass(frozen=True)
class Conflict:
    """Entries of one key that differ in their outcome, the newest first."""

    entries: tuple[Entry, ...]


@dataclass(frozen=True)
class Merged:
    """Several runs: what is kept of them, and where they contradict each other."""

    runs: tuple[Run, ...]
    entries: tuple[Entry, ...]
    conflicts: tuple[Conflict, ...] = ()

    @property
    def cases(self) -> list[CaseInfo]:
        """Every case, as the newest run that has it describes it."""
        found = {c.name: c for run in sorted(self.runs, key=_started) for c in run.header.cases}
        order = dict.fromkeys(c.name for run in self.runs for c in run.header.cases)
        return [found[name] for name in order]

    @property
    def targets(self) -> list[Target]:
        """Every target and environment once, as the run describes it that reaches the most there.

        Those of one backend stand together, and the backend that reaches the most stands first. Where nothing could
        try a target, and another machine has an environment that could, that one stands alone.
        """
        found: dict[tuple[str, str], Target] = {}
        for target in (t for run in self.runs for t in run.header.targets):
            key = (target.id, target.environment)
            if key not in found or target.evidence.rank > found[key].evidence.rank:
                found[key] = target
        tried = {t.id for t in found.values() if t.evidence is not Evidence.NONE}
        found = {k: t for k, t in found.items() if t.evidence is not Evidence.NONE or t.id not in tried}
        reach: dict[str, int] = {}
        for target in found.values():
            reach[target.backend] = max(reach.get(target.backend, 0), target.evidence.rank)
        backends = sorted(reach, key=lambda b: -reach[b])  # stable: else in the order of the runs
        return sorted(found.values(), key=lambda t: backends.index(t.backend))

    @cached_property
    def cells(self) -> Mapping[Cell, Sequence[Entry]]:
        """The entries of each cell."""
        cells: dict[Cell, list[Entry]] = {}
        for entry in self.entries:
            cells.setdefault(entry.cell, []).append(entry)
        return cells

    def parts(self) -> Iterator[Run]:
        """Yield the runs with those observations alone that are kept or in conflict: what a merged file holds."""
        kept = {id(e.observation) for e in self.entries}
        kept |= {id(e.observation) for c in self.conflicts for e in c.entries}
        for run in self.runs:
            observations = tuple(o for o in run.observations if id(o) in kept)
            if observations:
                yield dataclasses.replace(run, observations=observations)


def merge(runs: Iterable[Run]) -> Merged:
    """Return the runs as one.

    Of entries with one key the newest is kept; where they differ in outcome, all of them are a conflict. An entry that
    could not be tried gives way to any that was.
    """
    runs = tuple(runs)
    by_key: dict[Key, list[Entry]] = {}
    tried: set[Cell] = set()
    for run in runs:
        for observation, verdict in zip(run.observations, run.verdicts(), strict=True):
            entry = Entry(observation, verdict, run)
            by_key.setdefault(entry.key, []).append(entry)
            if entry.tried:
                tried.add(entry.cell)
    kept: list[Entry] = []
    conflicts: list[Conflict] = []
    for entries in by_key.values():
        real = [e for e in entries if e.tried] or ([] if entries[0].cell in tried else entries)
        newest_first = sorted(real, key=lambda e: e.when)[::-1]  # of one time, the later file's
        kept += newest_first[:1]
        if len({e.observation.outcome for e in newest_first}) > 1:
            conflicts.append(Conflict(tuple(newest_first)))
    return Merged(runs, tuple(kept), tuple(conflicts))


def shown(entries: Sequence[Entry]) -> Entry:
    """Return the entry that a table shows of one cell's: the worst outcome, and of passes the strongest evidence."""
    return (
        entries[0]
        if len(entries) == 1
        else max(entries, key=lambda e: (e.observation.outcome.severity, e.observation.evidence.rank))
    )


def _started(run: Run) -> str:
    return run.header.provenance.started
