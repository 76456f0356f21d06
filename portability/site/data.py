"""What the page knows of the runs: an index of all entries, small enough to be filtered at once, and their details.

The index is JSON of numbers and names, every name once. The details are JSON Lines, compressed: a page reads the one
line of the cell that is opened.
"""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from portability.merge import Entry, Merged
from portability.model import CaseInfo, Cell, Evidence, Expectation, Outcome, Standing, to_json
from portability.results import Run
from portability.table import PACKAGE, Column, columns_of, mark, not_expected, refused, view_of
from portability.text import clean, clip
from portability.times import figures, is_performance

VERSION = 1  # of what the page's script reads
SIGNS = ("", "?", "*", "!")  # of an entry, the gravest last
SAID = 160  # characters of an error that the index holds, for the filter by text
ESCAPE = re.compile(r'\\[^"]')
DETAIL = 8000  # characters of one that the details hold

Place = tuple[str, str]  # target, environment


@dataclass
class Names:
    """Names by number, in the order in which they are given or met."""

    known: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, names: Iterable[object]) -> Names:
        """Return these names, each once."""
        return cls({name: i for i, name in enumerate(dict.fromkeys(map(str, names)))})

    def number(self, name: str) -> int:
        """Return the number of a name; one that is new gets the next."""
        return self.known.setdefault(name, len(self.known))

    def __iter__(self) -> Iterator[str]:
        return iter(self.known)


class Site:
    """The runs as the page needs them.

    merged  the runs
    omit    targets that are left out
    """

    def __init__(self, merged: Merged, omit: Collection[str] = ()) -> None:
        self.merged = merged
        self.columns = columns_of(merged.targets, omit)
        self.places: Mapping[Place, int] = {(c.target, c.environment): i for i, c in enumerate(self.columns)}
        known = {c.name for c in merged.cases}
        self.entries = [e for e in merged.entries if e.cell.kernel in known and _place(e.cell) in self.places]
        self.cells = list(dict.fromkeys(e.cell for e in self.entries))
        self._apart = not_expected(merged)
        used = {c.kernel for c in self.cells}
        self.cases = [c for c in merged.cases if c.name in used]
        self.runs = {id(run): i for i, run in enumerate(merged.runs)}
        rules = (e.verdict.expectation for e in self.entries)
        self.rules: list[Expectation] = list(dict.fromkeys(r for r in rules if r is not None))

    def refused(self, entry: Entry) -> bool:
        """Return whether an entry counts for nothing, since it is refused as it should be."""
        return refused(entry) or entry.cell in self._apart

    def place(self, cell: Cell) -> int:
        """Return the number of the cell's column."""
        return self.places[_place(cell)]

    def index(self) -> dict[str, Any]:
        """Return what is filtered and drawn: see `static/data.js`, which reads it."""
        kernels = Names.of(c.name for c in self.cases)
        dtypes = Names.of([*(d for c in self.cases for d in c.dtypes)])
        samples = Names.of(s.name for c in self.cases for s in c.samples)
        versions = Names.of(_by_version({e.triton for e in self.entries}))
        said = Names.of([""])
        number = {cell: i for i, cell in enumerate(self.cells)}
        cells = [
            [kernels.number(c.kernel), dtypes.number(c.dtype), samples.number(c.sample), self.place(c)]
            for c in self.cells
        ]
        entries = [
            [number[e.cell], *_words(e), int(self.refused(e)), versions.number(e.triton), said.number(_said(e))]
            for e in self.entries
        ]
        index = {
            "version": VERSION,
            "evidence": [str(w) for w in Evidence],
            "outcomes": [str(w) for w in Outcome],
            "standings": [str(w) for w in Standing],
            "failing": [w.fails for w in Standing],
            "signs": SIGNS,
            "columns": [_column_data(c, self.merged) for c in self.columns],
            "cases": [_case_data(c) for c in self.cases],
            "dtypes": list(dtypes),
            "samples": list(samples),
            "versions": list(versions),
            "said": list(said),
            "cells": _columnwise(cells, 4),
            "entries": _columnwise(entries, 8),
            "times": list(self._times()),
            "runs": [_run_data(run) for run in self.merged.runs],
            "rules": [to_json(rule) for rule in self.rules],
        }
        return cleaned(index)  # type: ignore[no-any-return]

    def _times(self) -> Iterator[list[Any]]:
        for i, entry in enumerate(self.entries):
            if entry.observation.timing is not None and is_performance(entry):
                yield [i, *figures(entry.observation.timing)]

    def details(self) -> Iterator[str]:
        """Yield a line of JSON an entry, then, where there are several runs, one a cell: what each run saw of it."""
        rules = {rule: i for i, rule in enumerate(self.rules)}
        for entry in self.entries:
            rule = entry.verdict.expectation
            seen = to_json(entry.observation)
            del seen["cell"]
            if len(entry.observation.detail) > DETAIL:
                seen["detail"] = entry.observation.detail[:DETAIL] + "…"
            yield _line({
                "seen": seen,
                "why": entry.verdict.why,
                "run": self.runs[id(entry.run)],
                **({} if rule is None else {"rule": rules[rule]}),
            })  # fmt: skip
        if len(self.merged.runs) > 1:
            history = self._history()
            for cell in self.cells:
                yield _line(history[cell])

    def _history(self) -> Mapping[Cell, list[list[Any]]]:
        """Return of each cell its observations, the oldest first: run, time, evidence, outcome, version, device, ms."""
        found: dict[Cell, list[list[Any]]] = defaultdict(list)
        for i, run in enumerate(self.merged.runs):
            for o in run.observations:
                if o.outcome is not Outcome.UNAVAILABLE:
                    when = o.when or run.header.provenance.started
                    median = o.timing.median if o.timing and o.timing.stable and o.timing.performance else None
                    found[o.cell].append(
                        [i, when, str(o.evidence), str(o.outcome), o.versions.get("triton", ""), o.device, median]
                    )
        for history in found.values():
            history.sort(key=lambda record: str(record[1]))
        return found


def columns_named(columns: Sequence[Column]) -> Mapping[Column, str]:
    """Return the id by which the page's address names each column: the environment only where it tells them apart."""
    several = {c.target for c in columns for d in columns if c.target == d.target and c != d}
    return {c: f"{c.target}@{c.environment}" if c.target in several else c.target for c in columns}


def packed(lines: Iterable[str]) -> str:
    """Return lines compressed, in base64: what an HTML page can hold."""
    return base64.b64encode(gzip.compress("\n".join(lines).encode("ascii"), 6, mtime=0)).decode("ascii")


def ascii_json(value: Any) -> str:
    """Return JSON that an HTML page can hold in a script element: ASCII, and without the signs that end one."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def cleaned(value: Any) -> Any:
    """Return `value` with every string of it harmless to read (see `text.clean`); line breaks stay."""
    if isinstance(value, str):
        return value if value.isprintable() else "\n".join(clean(line) for line in value.split("\n"))
    if isinstance(value, Mapping):
        return {cleaned(k): cleaned(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [cleaned(v) for v in value]
    return value


def _line(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    # Only an escape can stand for something that is not printable, and most lines have none but that of a quote.
    return json.dumps(cleaned(value), separators=(",", ":")) if ESCAPE.search(text) else text


def _place(cell: Cell) -> Place:
    return cell.target, cell.environment


def _words(entry: Entry) -> tuple[int, int, int, int]:
    o = entry.observation
    return (
        _EVIDENCE[o.evidence],
        _OUTCOME[o.outcome],
        _STANDING[entry.verdict.standing],
        SIGNS.index(mark(entry)),
    )


_EVIDENCE = {word: i for i, word in enumerate(Evidence)}
_OUTCOME = {word: i for i, word in enumerate(Outcome)}
_STANDING = {word: i for i, word in enumerate(Standing)}


def _said(entry: Entry) -> str:
    o = entry.observation
    if not o.detail and not o.line:
        return ""
    return clip(": ".join(filter(None, (o.line, o.detail.split("\n", 1)[0]))), SAID)


def _columnwise(rows: Sequence[Sequence[int]], width: int) -> list[list[int]]:
    """A list a field rather than a list a row: half the size."""
    return [[row[i] for row in rows] for i in range(width)]


def _by_version(versions: Iterable[str]) -> list[str]:
    return sorted(versions, key=lambda v: [int(part) if part.isdecimal() else -1 for part in v.split(".")])


def _column_data(column: Column, merged: Merged) -> dict[str, Any]:
    versions = next(
        (t.versions for t in merged.targets if (t.id, t.environment) == (column.target, column.environment)), {}
    )
    return {**to_json(column), "versions": dict(versions)}


def _case_data(case: CaseInfo) -> dict[str, Any]:
    return {
        "name": case.name,
        "view": str(view_of(case)),
        "group": case.group.removeprefix(PACKAGE),
        "summary": case.summary,
        "file": case.file,
        "names": case.names,
    }


def _run_data(run: Run) -> dict[str, Any]:
    return {
        "label": run.header.provenance.host or Path(run.file).name or run.header.run,
        "file": Path(run.file).name,
        "interrupted": run.interrupted,
        **to_json(run.header.provenance),
    }
