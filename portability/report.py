"""The whole table: grids of squares, times, and below them what fails, what is declared, what is missing and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path

from portability.baselines.records import first_error
from portability.binaries import excess, interpreted_right
from portability.merge import Conflict, Entry, Merged, shown
from portability.model import Evidence, Expectation, Outcome, Standing
from portability.results import Run
from portability.table import Grid, Section, Square, Table, View, grid, not_expected, view_of
from portability.times import is_performance, times

LEGEND = (
    "a square: the lowest evidence of its cells, how many of them passed, and the worst of what did not",
    "ran: on the target's own hardware; emulated: code made for it, on a CPU; interpreted: by Triton's interpreter; "
    "compiled: to its binary, never run; lowered: part of the way to one",
)
SIGNS = {
    "!": "! not as declared: the run fails by it",
    "*": "* declared with its reason (below)",
    "?": "? cannot be decided by this evidence",
    "n/a": "n/a: refused, as dtypes are that the adapter does not claim, and what of the language no target takes or "
    "another vendor adds",
    "not run": "not run: no cell of this row was selected there",
    "unavailable": "unavailable: nothing here could try (below)",
}


def build(
    merged: Merged,
    views: Sequence[View] = (),
    by: Sequence[str] = (),
    unmatched: Sequence[Expectation] = (),
    omit: Collection[str] = (),
) -> Table:
    """Return all that is printed of the runs.

    views      which grids; by default each that has a row
    by         what rows are made of, in every grid (see `table.FIELDS`); by default as suits the view
    unmatched  rules that matched no cell, as `never_matched` says
    omit       targets left out
    """
    grids = [grid(merged, view, by, omit) for view in views or View]
    grids = [g for g in grids if g.rows or views]
    of = {c.name: view_of(c) for c in merged.cases}
    wanted = [g.view for g in grids]
    cells = tuple(
        shown(entries)
        for cell, entries in merged.cells.items()
        if of.get(cell.kernel) in wanted and cell.target not in omit
    )
    return Table(
        grids=tuple(grids),
        times=times(merged, wanted),
        sections=sections(merged, cells, grids, unmatched),
        cells=cells,
        fails=bool(unmatched)
        or any(True for _ in excess((e.observation for e in cells), merged.cases))
        or any(e.verdict.standing.fails for e in cells),
    )


def sections(
    merged: Merged, entries: Sequence[Entry], grids: Sequence[Grid], unmatched: Sequence[Expectation]
) -> tuple[Section, ...]:
    """Return what there is to say of `entries`, those that the grids show: what matters most comes first."""
    everything: tuple[tuple[str, Iterable[str]], ...] = (
        ("Regressions: no rule declares it", _failing(entries, Standing.REGRESSION)),
        ("Mismatches: another failure than is declared", _failing(entries, Standing.MISMATCH)),
        ("Stale: declared not to work, and works", _failing(entries, Standing.STALE)),
        ("Expired rules", _failing(entries, Standing.EXPIRED)),
        ("More binaries than a case allows", excess((e.observation for e in entries), merged.cases)),
        ("Rules that matched no cell", (f"{r.place}: {r.reason}" for r in unmatched)),
        ("Conflicts: one cell, Triton and device, and different outcomes", map(_conflict, merged.conflicts)),
        ("Differs between machines and versions", _differences(merged, entries)),
        ("Changed since the baseline of an older Triton", _changed(entries)),
        ("What of the language does not work", _not_working(merged, entries)),
        ("Declared", _declared(entries)),
        ("Unavailable", _unavailable(grids)),
        ("Warnings", _warnings(entries)),
        ("The same blocks interpreted right", interpreted_right(e.observation for e in entries)),
        ("Times left out", _left_out(entries)),
        ("Where it comes from", (_source(merged, run) for run in merged.runs)),
        ("Summary", _summary(entries)),
        ("Legend", _legend(grids)),
    )
    made = (Section(title, tuple(lines)) for title, lines in everything)
    return tuple(section for section in made if section.lines)


def _failing(entries: Sequence[Entry], standing: Standing) -> Iterator[str]:
    """A line for cells that differ in their sample alone, the worst first."""
    alike: dict[tuple[str, ...], list[Entry]] = {}
    for entry in entries:
        if entry.verdict.standing is standing:
            cell, o = entry.cell, entry.observation
            first = o.detail.split("\n", 1)[0]
            alike.setdefault((cell.kernel, cell.dtype, cell.target, o.outcome, o.line, first), []).append(entry)
    for key, several in sorted(alike.items(), key=lambda item: -item[1][0].observation.outcome.severity):
        *_, outcome, line, first = key
        verdict = several[0].verdict
        more = f" and {_count(len(several) - 1, 'more sample')}" if len(several) > 1 else ""
        rule = f" ({verdict.expectation.place})" if verdict.expectation else ""
        why = "" if standing is Standing.REGRESSION else f"; {verdict.why}{rule}"
        said = "".join((f" at {line}" if line else "", f": {first}" if first else ""))
        yield f"{several[0].cell.id}{more}: {outcome}{said}{why}"


def _conflict(conflict: Conflict) -> str:
    newest, *older = (f"{e.observation.outcome} at {e.when} in {_label(e.run)}" for e in conflict.entries)
    return f"{conflict.entries[0].cell.id}: {newest} (shown), {', '.join(older)}"


def _differences(merged: Merged, entries: Sequence[Entry]) -> Iterator[str]:
    wanted = {e.cell for e in entries}
    for cell, several in merged.cells.items():
        if cell in wanted and len({e.observation.outcome for e in several}) > 1:
            yield f"{cell.id}: {', '.join(f'{e.observation.outcome} ({_origin(e)})' for e in several)}"


def _changed(entries: Sequence[Entry]) -> Iterator[str]:
    """A line for cells of a probe that changed alike."""
    alike: dict[tuple[str, str], list[Entry]] = {}
    for e in entries:
        o, recorded = e.observation, e.observation.recorded
        if recorded is None or e.verdict.standing is not Standing.UNKNOWN:
            continue
        if (recorded.outcome, recorded.how) != (o.outcome, o.how):
            alike.setdefault((e.cell.kernel, e.verdict.why), []).append(e)
    for (kernel, why), found in alike.items():
        places = ", ".join(dict.fromkeys(f"{e.cell.dtype} on {e.cell.target}" for e in found))
        yield f"{kernel} ({places}): {why}"


def _not_working(merged: Merged, entries: Sequence[Entry]) -> Iterator[str]:
    """A line for cells of a probe that say the same; what is no target's to do is left out."""
    probes, apart = {c.name for c in merged.cases if c.names}, not_expected(merged)
    alike: dict[tuple[str, Outcome, str], list[Entry]] = {}
    for e in entries:
        o = e.observation
        if e.tried and e.cell.kernel in probes and o.outcome is not Outcome.PASS and e.cell not in apart:
            alike.setdefault((e.cell.kernel, o.outcome, first_error(o.detail)), []).append(e)
    for (kernel, outcome, error), found in alike.items():
        dtypes, targets = ({getattr(e.cell, n): None for e in found} for n in ("dtype", "target"))
        yield f"{kernel} ({', '.join(dtypes)}) on {', '.join(targets)}: {outcome}{f': {error}' if error else ''}"


def _declared(entries: Sequence[Entry]) -> Iterator[str]:
    rules: dict[Expectation, Counter[Standing]] = {}
    for entry in entries:
        rule, standing = entry.verdict.expectation, entry.verdict.standing
        if rule is not None and not standing.fails:
            rules.setdefault(rule, Counter())[standing] += 1
    for rule, cells in sorted(rules.items(), key=lambda item: item[0].place):
        as_declared, undecided = cells[Standing.AS_EXPECTED], cells[Standing.UNKNOWN]
        counts = [_cells(as_declared)] if as_declared else []
        counts += [f"undecided by the evidence of {_cells(undecided)}"] if undecided else []
        link = f" {rule.link}" if rule.link else ""
        yield f"{' or '.join(rule.outcome)}, {', '.join(counts)}: {rule.reason}{link} ({rule.place})"


def _unavailable(grids: Sequence[Grid]) -> Iterator[str]:
    columns = dict.fromkeys(c for g in grids for c in g.columns)
    for column in columns:
        if column.evidence is Evidence.NONE:
            yield f"{column.target}: {column.why or 'no reason given'}" + (
                f"; to fill it: {column.remedy}" if column.remedy else ""
            )


def _warnings(entries: Sequence[Entry]) -> Iterator[str]:
    found: dict[tuple[str, str, str], set[str]] = {}
    for entry in entries:
        for w in entry.observation.warnings:
            found.setdefault((w.code, w.message, w.line), set()).update(w.targets or (entry.cell.target,))
    for (code, message, line), targets in found.items():
        yield f"{line + ': ' if line else ''}{code}: {message} ({', '.join(sorted(targets))})"


def _left_out(entries: Sequence[Entry]) -> Iterator[str]:
    timed = Counter(e.cell.target for e in entries if e.observation.timing and not is_performance(e))
    for target, cells in timed.items():
        yield f"{target}: {_cells(cells)}, whose times are no measure of performance"


def _source(merged: Merged, run: Run) -> str:
    p = run.header.provenance
    machine = ", ".join(x for x in (p.os, *p.devices, p.driver and f"driver {p.driver}") if x)
    versions = ", ".join(f"{n} {v}" for n, v in (("Triton", p.triton), ("torch", p.torch), ("Python", p.python)) if v)
    text = "; ".join(x for x in (_label(run), machine, versions, p.commit and f"commit {p.commit}", p.started) if x)
    if len(merged.runs) > 1:
        shares = Counter((e.observation.evidence, e.cell.target) for e in merged.entries if e.run is run and e.tried)
        by_evidence = {e: [t for (k, t) in shares if k is e] for e in Evidence}
        text += "".join(f"; {e}: {', '.join(targets)}" for e, targets in by_evidence.items() if targets)
    if run.interrupted:
        asked = run.header.selection.cells
        text += f"; interrupted after {len(run.observations)}{f' of {asked}' if asked else ''} cells"
        text += " (--resume goes on with it)"
    return text + ("; its last line was cut short and is left out" if run.torn else "")


def _summary(entries: Sequence[Entry]) -> Iterator[str]:
    yield f"{_cells(len(entries))} by evidence: {_counts(entries, _evidence, Evidence)}"
    yield f"by outcome: {_counts(entries, lambda e: e.observation.outcome, Outcome)}"
    yield f"against what is declared: {_counts(entries, lambda e: e.verdict.standing, Standing)}"


def _evidence(entry: Entry) -> Evidence:
    return entry.observation.evidence if entry.tried else Evidence.NONE


def _counts(entries: Iterable[Entry], of: Callable[[Entry], object], words: Iterable[object]) -> str:
    counts = Counter(of(e) for e in entries)
    return ", ".join(f"{w} {counts[w]}" for w in words if counts[w])


def _legend(grids: Sequence[Grid]) -> Iterator[str]:
    squares: list[Square] = [s for g in grids for row in g.rows for s in row.squares]
    if not squares:
        return
    yield from LEGEND
    for sign, text in SIGNS.items():
        if any(sign in s.text if len(sign) > 1 else any(m.endswith(sign) for m in s.marks) for s in squares):
            yield text


def _cells(n: int) -> str:
    return _count(n, "cell")


def _count(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


def _label(run: Run) -> str:
    return run.header.provenance.host or Path(run.file).name or run.header.run


def _origin(entry: Entry) -> str:
    where = entry.observation.device or _label(entry.run)
    return f"{entry.observation.evidence}, {where}" + (f", Triton {entry.triton}" if entry.triton else "")
