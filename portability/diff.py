"""What changed between two sets of runs, cell by cell, and over many."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from portability.merge import Entry, Merged, merge
from portability.model import Cell, Evidence, Outcome, Standing, Timing, Word
from portability.results import Run
from portability.table import Section
from portability.times import duration


class Kind(Word):
    """How a cell changed."""

    REGRESSED = "regressed"
    VERSION = "changed by version"  # another Triton minor version, and another outcome
    SLOWER = "slower beyond noise"
    NEW_FAILURE = "fails, and was not tested"
    UNTESTED = "newly untested"  # not at all, or by weaker evidence
    CHANGED = "fails otherwise"
    UNDECIDED = "no longer passes, and cannot be judged"
    DECLARED = "no longer passes, as declared"
    FIXED = "fixed"
    FASTER = "faster beyond noise"
    TESTED = "newly tested"  # for the first time, or by stronger evidence


@dataclass(frozen=True)
class Change:
    """One cell's change."""

    kind: Kind
    cell: Cell
    text: str
    worse: bool = False


@dataclass(frozen=True)
class Diff:
    """All changes between two sets of runs."""

    changes: tuple[Change, ...]
    compared: int  # cells that are in both

    @property
    def exit_code(self) -> int:
        """1 if anything became worse, else 0."""
        return int(any(c.worse for c in self.changes))

    def of(self, kind: Kind) -> list[Change]:
        """Return the changes of one kind."""
        return [c for c in self.changes if c.kind is kind]

    @property
    def sections(self) -> tuple[Section, ...]:
        """The changes by kind, the worst kinds first, and a summary."""
        found = [(kind, self.of(kind)) for kind in Kind]
        made = [Section(_title(kind), tuple(_lines(kind, changes))) for kind, changes in found if changes]
        counts = ", ".join(f"{kind} {len(changes)}" for kind, changes in found if changes) or "no change"
        return (*made, Section("Summary", (f"cells in both: {self.compared}; {counts}",)))


def diff(old: Merged, new: Merged) -> Diff:
    """Return what changed from `old` to `new`: outcomes and times device by device, and each cell's evidence."""
    changes: list[Change] = []
    cells = dict.fromkeys((*old.cells, *new.cells))
    for cell in cells:
        before, after = _tried(old, cell), _tried(new, cell)
        for a, b in _pairs(before, after):
            changes += _compare(a, b)
        changes += _coverage(cell, before, after)
    return Diff(tuple(changes), sum(cell in old.cells and cell in new.cells for cell in cells))


def _tried(merged: Merged, cell: Cell) -> list[Entry]:
    return [e for e in merged.cells.get(cell, ()) if e.tried]


def _pairs(before: Sequence[Entry], after: Sequence[Entry]) -> Iterator[tuple[Entry, Entry]]:
    """Yield what can be compared on each device: the same Triton minor versions, or if there are none the newest."""
    for device in dict.fromkeys(e.observation.device for e in before):
        old = {e.triton: e for e in sorted(before, key=_age) if e.observation.device == device}
        new = {e.triton: e for e in sorted(after, key=_age) if e.observation.device == device}
        common = [version for version in old if version in new]
        if common:
            yield from ((old[version], new[version]) for version in common)
        elif new:
            yield list(old.values())[-1], list(new.values())[-1]


def _age(entry: Entry) -> str:
    return entry.when


def _compare(old: Entry, new: Entry) -> Iterator[Change]:
    before, after = old.observation, new.observation
    worse = _worse(old, new)
    text = f"{_state(old)} -> {_state(new)}{_said(new)}"
    if before.outcome is after.outcome and not worse:
        yield from _compare_times(old, new)
    elif old.triton != new.triton:
        yield Change(Kind.VERSION, new.cell, f"Triton {old.triton} -> {new.triton}: {text}", worse)
    elif worse:
        yield Change(Kind.REGRESSED, new.cell, text, worse=True)
    elif after.outcome is Outcome.PASS:
        yield Change(Kind.FIXED, new.cell, text)
    elif before.outcome is not Outcome.PASS:
        yield Change(Kind.CHANGED, new.cell, text)
    else:
        undecided = new.verdict.standing is Standing.UNKNOWN
        yield Change(Kind.UNDECIDED if undecided else Kind.DECLARED, new.cell, text)


def _worse(old: Entry, new: Entry) -> bool:
    """Whether the new run fails by the cell and the old one did not, or a pass was lost that no rule speaks of.

    A timeout is neither: that of a compiler is no regression on a slower machine, any other fails the run anyway.
    """
    if new.verdict.standing.fails:
        return not old.verdict.standing.fails
    lost = old.observation.outcome is Outcome.PASS and new.observation.outcome not in (Outcome.PASS, Outcome.TIMEOUT)
    return lost and new.verdict.standing is Standing.UNKNOWN


def _compare_times(old: Entry, new: Entry) -> Iterator[Change]:
    a, b = old.observation.timing, new.observation.timing
    if a is None or b is None or not _comparable(a, b):
        return
    text = f"{_time(a)} -> {_time(b)}, {b.median / a.median:.2f}x the time" if a.median > 0 else ""
    if b.p20 > a.p80:
        yield Change(Kind.SLOWER, new.cell, text, worse=True)
    elif b.p80 < a.p20:
        yield Change(Kind.FASTER, new.cell, text)


def _comparable(a: Timing, b: Timing) -> bool:
    return a.stable and b.stable and a.performance and b.performance and a.method == b.method


def _time(timing: Timing) -> str:
    return f"{duration(timing.median)} ({duration(timing.p20)} to {duration(timing.p80)})"


def _coverage(cell: Cell, before: Sequence[Entry], after: Sequence[Entry]) -> Iterator[Change]:
    """Yield what the cell's evidence gained or lost, and what fails on a device that is new to it."""
    devices = {e.observation.device for e in before}
    failing = [e for e in after if e.observation.device not in devices and e.verdict.standing.fails]
    for entry in failing:
        yield Change(Kind.NEW_FAILURE, cell, f"{_state(entry)}{_said(entry)}", worse=True)
    most, now = _strongest(before), _strongest(after)
    if now.rank < most.rank:
        yield Change(Kind.UNTESTED, cell, f"{most} -> {now if after else 'not run'}")
    elif now.rank > most.rank and not failing:
        yield Change(Kind.TESTED, cell, f"{most if before else 'not run'} -> {now}")


def _strongest(entries: Sequence[Entry]) -> Evidence:
    return max((e.observation.evidence for e in entries), key=lambda e: e.rank, default=Evidence.NONE)


def _state(entry: Entry) -> str:
    o, standing = entry.observation, entry.verdict.standing
    odd = f", {standing}" if standing.fails and standing is not Standing.REGRESSION else ""
    return f"{o.outcome} ({o.evidence}{odd})"


def _said(entry: Entry) -> str:
    o = entry.observation
    at, first = (f" at {o.line}" if o.line else ""), o.detail.split("\n", 1)[0]
    return f"{at}: {first}" if first else at


def _lines(kind: Kind, changes: Sequence[Change]) -> Iterator[str]:
    """A line a change; what was merely tested or not is a line a kernel and target."""
    if kind not in (Kind.TESTED, Kind.UNTESTED):
        yield from (f"{c.cell.id}: {c.text}" for c in changes)
        return
    alike = Counter((c.cell.kernel, c.cell.target, c.text) for c in changes)
    for (kernel, target, text), n in alike.items():
        yield f"{kernel} on {target}, {n} {'cell' if n == 1 else 'cells'}: {text}"


def _title(kind: Kind) -> str:
    return kind.value[0].upper() + kind.value[1:]


# ------------------------------------------------------------------------------------------------- history

HEAD = ("started", "host", "Triton", "commit", "cells", "pass", "fail", "regressed", "fixed", "slower")


def history(runs: Iterable[Run]) -> tuple[tuple[str, ...], ...]:
    """Return a heading and a row a run, the oldest first; changes are against the run before it on the same host."""
    rows = [HEAD]
    last: dict[str, Merged] = {}
    for run in sorted(runs, key=lambda r: r.header.provenance.started):
        p, now = run.header.provenance, merge([run])
        tried = [e for e in now.entries if e.tried]
        changes = ("-", "-", "-")
        if p.host in last:
            found = diff(last[p.host], now)
            bad = sum(c.worse and c.kind is not Kind.SLOWER for c in found.changes)
            changes = (str(bad), str(len(found.of(Kind.FIXED))), str(len(found.of(Kind.SLOWER))))
        last[p.host] = now
        passed = sum(e.observation.outcome is Outcome.PASS for e in tried)
        failed = sum(e.verdict.standing.fails for e in tried)
        cells = f"{len(tried)}{' (interrupted)' if run.interrupted else ''}"
        rows.append((p.started[:16], p.host, p.triton, p.commit[:12], cells, str(passed), str(failed), *changes))
    return tuple(rows)


def cell_history(runs: Iterable[Run], cell: Cell) -> Iterator[tuple[str, Entry]]:
    """Yield the time and entry of one cell in each run that has it, the oldest first."""
    entries = (e for run in runs for e in merge([run]).cells.get(cell, ()))
    yield from sorted(((e.when, e) for e in entries), key=lambda pair: pair[0])
