"""Observations as a table of squares: rows of kernels, columns of targets.

A square speaks for all of its cells: the lowest evidence, how many of them passed, and the worst of what did not. What
was compiled is never shown as run, what could not be tried never as a failure, and nothing missing as a pass.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from portability.baselines.history import uniform
from portability.merge import Entry, Merged, shown
from portability.model import CaseInfo, Cell, Evidence, Outcome, Standing, Target, Word

PACKAGE = "package:"  # begins the group of a case that was recorded from a package


class View(Word):
    """What a grid is about."""

    KERNELS = "kernels"
    API = "api"
    PACKAGES = "packages"


ROWS: Mapping[View, tuple[str, ...]] = {
    View.KERNELS: ("kernel",),
    View.API: ("group",),
    View.PACKAGES: ("group",),
}
FIELDS = ("group", "kernel", "dtype", "sample", "environment", "triton")  # what rows can be made of


class TableError(ValueError):
    """A table that was asked for and does not exist."""


@dataclass(frozen=True)
class Square:
    """What one row holds of one column."""

    evidence: Evidence = Evidence.NONE  # the lowest of what was tried
    passed: int = 0
    total: int = 0  # without those that the adapter does not claim and that are refused
    refused: int = 0
    unavailable: int = 0
    outcomes: Mapping[str, int] = field(default_factory=dict)
    marks: tuple[str, ...] = ()  # the worst of each kind that did not pass as a matter of course: "wrong!"
    fails: bool = False  # whether the run fails by it
    emulated: int = 0  # probes that pass by other means than the hardware's own

    @property
    def text(self) -> str:
        """The square in words, for any renderer."""
        if self.total == 0:
            return "n/a" if self.refused else "not run"
        if self.unavailable == self.total:
            return "unavailable"
        return " ".join((f"{self.evidence} {self.passed}/{self.total}", *self.marks))

    @property
    def percent(self) -> int | None:
        """The part that passed of those that could be tried, down to whole percent: 100 % is all of them."""
        tried = self.total - self.unavailable
        return 100 * self.passed // tried if tried else None

    @property
    def share(self) -> str:
        """That part in words."""
        return self.text if self.percent is None else f"{self.evidence} {self.percent} %"

    @property
    def shared(self) -> str:
        """The square with that part, for rows that stand for many cells."""
        return self.text if self.percent is None else " ".join((f"{self.share} of {self.total}", *self.notes))

    @property
    def notes(self) -> tuple[str, ...]:
        """What is said beside the part that passed."""
        return (*self.marks, *([f"{self.emulated} emulated"] if self.emulated else []))


@dataclass(frozen=True)
class Column:
    """One target in one environment."""

    target: str
    environment: str
    backend: str
    title: str
    evidence: Evidence
    why: str = ""
    remedy: str = ""


@dataclass(frozen=True)
class Row:
    """One row: its names, and a square a column."""

    names: tuple[str, ...]
    squares: tuple[Square, ...]


@dataclass(frozen=True)
class Grid:
    """One view: a table of squares."""

    view: View
    by: tuple[str, ...]
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    totals: tuple[Square, ...]  # a square a column, over all rows


@dataclass(frozen=True)
class Section:
    """Lines below the grids. They may hold foreign text: a renderer makes it harmless."""

    title: str
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Table:
    """All that is printed."""

    grids: tuple[Grid, ...]
    times: tuple[tuple[str, ...], ...] = ()  # the first is the heading
    sections: tuple[Section, ...] = ()
    cells: tuple[Entry, ...] = ()  # what the squares are made of
    fails: bool = False


def view_of(case: CaseInfo) -> View:
    """Return the view that a case belongs to."""
    if case.group.startswith(PACKAGE):
        return View.PACKAGES
    return View.API if case.group else View.KERNELS


def square(entries: Iterable[Entry], apart: Collection[Cell] = ()) -> Square:
    """Return what the entries, one a cell, come to; cells in `apart` are refused as they should be."""
    entries = list(entries)
    counted = [e for e in entries if not refused(e) and e.cell not in apart]
    tried = [e for e in counted if e.tried]
    outcomes = Counter(str(e.observation.outcome) for e in counted)
    return Square(
        evidence=min((e.observation.evidence for e in tried), key=lambda e: e.rank, default=Evidence.NONE),
        passed=outcomes[str(Outcome.PASS)],
        total=len(counted),
        refused=len(entries) - len(counted),
        unavailable=len(counted) - len(tried),
        outcomes=dict(outcomes),
        marks=_marks(counted),
        fails=any(e.verdict.standing.fails for e in counted),
        emulated=sum(e.observation.how == "emulated" for e in counted),
    )


def refused(entry: Entry) -> bool:
    """Return whether a kernel's dtype that the adapter does not claim was refused, as it should be."""
    return (
        entry.verdict.standing is Standing.AS_EXPECTED
        and entry.verdict.expectation is None
        and entry.observation.recorded is None  # a probe's refusal is what its table is about
        and entry.observation.outcome is not Outcome.PASS
    )


def not_expected(merged: Merged) -> frozenset[Cell]:
    """Return the cells of probes that count against no target.

    Those of another vendor's extension, and those of a probe and dtype that no target takes, of two backends at least:
    that is the language's own contract, as `exp` of float16 is.
    """
    backends = {(t.id, t.environment): t.backend for t in merged.targets}
    vendors = {c.name: c.vendor for c in merged.cases if c.names}
    refusals: dict[tuple[str, str], dict[str, list[Entry]]] = {}
    for e in merged.entries:
        if e.cell.kernel in vendors and e.tried and e.observation.evidence is not Evidence.INTERPRETED:
            backend = backends.get((e.cell.target, e.cell.environment), "")
            refusals.setdefault((e.cell.kernel, e.cell.dtype), {}).setdefault(backend, []).append(e)
    outcomes = {k: [[e.observation.outcome for e in es] for es in found.values()] for k, found in refusals.items()}
    alike = {k for k, found in outcomes.items() if uniform(found)}
    return frozenset(
        e.cell
        for e in merged.entries
        if e.observation.outcome is not Outcome.PASS
        and (
            (e.cell.kernel, e.cell.dtype) in alike
            or vendors.get(e.cell.kernel, "") not in ("", backends.get((e.cell.target, e.cell.environment)))
        )
    )


def mark(entry: Entry) -> str:
    """Return the sign of one entry: "!" fails the run, "*" is declared, "?" cannot be decided, "" needs none."""
    if entry.verdict.standing.fails:
        return "!"
    if not entry.tried or entry.verdict.standing is not Standing.UNKNOWN:
        return "*" if entry.verdict.expectation and entry.tried else ""
    return "?"


def _marks(entries: Sequence[Entry]) -> tuple[str, ...]:
    worst: dict[str, Entry] = {}
    for entry in entries:
        sign = mark(entry)
        if sign or entry.observation.outcome is not Outcome.PASS:
            worst[sign] = shown([entry, *([worst[sign]] if sign in worst else [])])
    return tuple(_word(worst[sign]) + sign for sign in ("!", "*", "?", "") if sign in worst)


def _word(entry: Entry) -> str:
    """A pass that carries a mark says why: it is stale, or could not be decided."""
    if entry.observation.outcome is not Outcome.PASS:
        return str(entry.observation.outcome)
    return str(entry.verdict.standing) if entry.verdict.standing.fails else ""


# ------------------------------------------------------------------------------------------------- a grid


def grid(merged: Merged, view: View, by: Sequence[str] = (), omit: Collection[str] = ()) -> Grid:
    """Return one view of the runs.

    by    what rows are made of, some of `FIELDS`; by default a row a kernel, or a row a group of probes
    omit  targets left out
    """
    by = tuple(by) or ROWS[view]
    unknown = [name for name in by if name not in FIELDS]
    if unknown:
        raise TableError(f"rows cannot be grouped by {unknown[0]!r}; they can by {', '.join(FIELDS)}")
    cases = {c.name: c for c in merged.cases if view_of(c) is view}
    columns = columns_of(merged.targets, omit)
    place = {(c.target, c.environment): i for i, c in enumerate(columns)}
    rows: dict[tuple[str, ...], list[list[Entry]]] = {}
    for cell, entries in merged.cells.items():
        column = place.get((cell.target, cell.environment))
        if cell.kernel in cases and column is not None:
            entry = shown(entries)
            names = tuple(_name(entry, cases[cell.kernel], f) for f in by)
            rows.setdefault(names, [[] for _ in columns])[column].append(entry)
    order = Order(list(cases.values()), by)
    apart = not_expected(merged) if view is View.API else frozenset()
    found = [Row(names, tuple(square(e, apart) for e in rows[names])) for names in sorted(rows, key=order)]
    totals = [square((e for row in rows.values() for e in row[i]), apart) for i in range(len(columns))]
    return Grid(view, by, tuple(columns), tuple(found), tuple(totals))


def columns_of(targets: Sequence[Target], omit: Collection[str] = ()) -> list[Column]:
    """Return a column a target and environment, without the targets left out."""
    return [
        Column(t.id, t.environment, t.backend, t.title, t.evidence, t.why, t.remedy)
        for t in targets
        if t.id not in omit
    ]


def _name(entry: Entry, case: CaseInfo, name: str) -> str:
    if name == "group":
        return case.group.removeprefix(PACKAGE)
    return entry.triton if name == "triton" else str(getattr(entry.cell, name))


class Order:
    """Sorts rows as the cases name things, and what they do not name by its text."""

    def __init__(self, cases: Sequence[CaseInfo], by: Sequence[str]) -> None:
        names: Mapping[str, Iterable[str]] = {
            "group": (c.group.removeprefix(PACKAGE) for c in cases),
            "kernel": (c.name for c in cases),
            "dtype": (d for c in cases for d in c.dtypes),
            "sample": (s.name for c in cases for s in c.samples),
        }
        self.ranks = [{n: i for i, n in enumerate(dict.fromkeys(names.get(field, ())))} for field in by]

    def __call__(self, row: tuple[str, ...]) -> tuple[tuple[int, str], ...]:
        """Return the key by which a row is sorted."""
        return tuple((ranks.get(n, len(ranks)), n) for ranks, n in zip(self.ranks, row, strict=True))
