"""What the baselines of several versions say together: since when a probe works, and what changed between two."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from portability.baselines import files
from portability.baselines.files import FOLDER, Key, Record, Records
from portability.model import Evidence, Outcome

# By whom a probe's answer is taken where a target has several: who saw it run knows better than who compiled it.
STRONGEST = sorted(Evidence, key=lambda e: -e.rank)


def best(records: Records, probe: str, dtype: str) -> tuple[Evidence, Record] | None:
    """Return a probe's record by the strongest evidence that there is, or None."""
    return next(((e, records[probe, dtype, e]) for e in STRONGEST if (probe, dtype, e) in records), None)


@dataclass(frozen=True)
class Span:
    """From which Triton to which a cell passes, of those that are recorded for its target."""

    recorded: tuple[str, ...]  # minor versions, the oldest first
    passes: tuple[str, ...]

    @property
    def text(self) -> str:
        """The span in words, empty where it has passed in all recorded versions or in none."""
        if not self.passes or self.passes == self.recorded:
            return ""
        if self.passes[-1] != self.recorded[-1]:
            return f"gone in {self.recorded[self.recorded.index(self.passes[-1]) + 1]}"
        return f"since {self.passes[0]}"


def span(probe: str, dtype: str, target: str, folder: Path = FOLDER, only: frozenset[str] | None = None) -> Span:
    """Return in which versions a probe passes on a target; versions in which it is not recorded do not count.

    All by one evidence, the strongest of the newest version: what ran in one and was compiled in the next says nothing
    of a change. `only` bounds what is read of the files, as in `files.read`.
    """
    by_version = {minor: files.read(minor, target, folder, only) for minor in files.versions(target, folder)}
    known = [found[0] for records in by_version.values() if (found := best(records, probe, dtype)) is not None]
    if not known:
        return Span((), ())
    seen = {minor: records.get((probe, dtype, known[-1])) for minor, records in by_version.items()}
    recorded = tuple(minor for minor, record in seen.items() if record is not None)
    return Span(recorded, tuple(m for m in recorded if (r := seen[m]) is not None and r.outcome is Outcome.PASS))


@dataclass(frozen=True)
class Changed:
    """One cell that came out otherwise in another version."""

    key: Key
    target: str
    kind: str  # added, removed or changed
    before: Record
    after: Record


def changes(old: str, new: str, folder: Path = FOLDER) -> Iterator[Changed]:
    """Yield what differs between two minor versions on the targets that both have, by cell."""
    for target in sorted({*files.targets(old, folder)} & {*files.targets(new, folder)}):
        before, after = files.read(old, target, folder), files.read(new, target, folder)
        for key in sorted(before.keys() & after.keys()):
            a, b = before[key], after[key]
            if (a.outcome, a.how) != (b.outcome, b.how):
                yield Changed(key, target, _kind(a, b), a, b)


def _kind(before: Record, after: Record) -> str:
    passed, passes = (r.outcome is Outcome.PASS for r in (before, after))
    return "changed" if passed is passes else "added" if passes else "removed"


@cache
def contract(minor: str, folder: Path = FOLDER, only: frozenset[str] | None = None) -> frozenset[tuple[str, str]]:
    """Return probes and dtypes that no target takes, of two backends at least: the language's own contract.

    What `exp` does not take is refused by the front end for all targets alike, and counts against none. What was only
    interpreted is not asked: the interpreter may refuse what no compiler does.
    """
    outcomes: dict[tuple[str, str], dict[str, list[Outcome]]] = {}
    for target in files.targets(minor, folder):
        for (probe, dtype, evidence), record in files.read(minor, target, folder, only).items():
            if evidence is not Evidence.INTERPRETED:
                by_backend = outcomes.setdefault((probe, dtype), {})
                by_backend.setdefault(target.partition(":")[0], []).append(record.outcome)
    return frozenset(key for key, found in outcomes.items() if uniform(found.values()))


def uniform(outcomes: Iterable[Collection[Outcome]]) -> bool:
    """Return whether outcomes, gathered by backend, are refusals by all of two or more."""
    found = list(outcomes)
    return len(found) > 1 and not any(Outcome.PASS in of_one for of_one in found)
