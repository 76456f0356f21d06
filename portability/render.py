"""A table as text: for a terminal, as Markdown, JSON or CSV.

A renderer only renders, and makes foreign text harmless.
"""

from __future__ import annotations

import csv
import io
import json
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from tabulate import MIN_PADDING, tabulate

from portability.merge import Entry
from portability.model import to_json
from portability.table import FIELDS, Column, Grid, Section, Square, Table, TableError, View

WIDTH = 100  # columns of a terminal that a table is made to fit
MOST = 20  # lines of a section that a person reads; JSON holds them all
FORMAT = "portability-table"
VERSION = 1  # of the JSON form
TITLES = {View.KERNELS: "Kernels", View.API: "The language, by group", View.PACKAGES: "Packages"}
FINER = {
    View.KERNELS: "--group-by kernel,dtype or kernel,dtype,sample shows the rest",
    View.API: "--group-by group,kernel shows each name",
    View.PACKAGES: "--group-by group,kernel shows each kernel",
}


def render(table: Table, form: str = "terminal", width: int = WIDTH) -> str:
    """Return `table` in one of `FORMS`. Raises `TableError` for another."""
    if form not in FORMS:
        raise TableError(f"no format {form!r}; there are {', '.join(FORMS)}")
    return FORMS[form](table, width)


def clean(text: str) -> str:
    r"""Return `text` with whatever a terminal or an editor acts upon spelt out: "\x1b" for an escape.

    Line breaks, control characters, the marks that turn the direction of writing, and lone surrogates go.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def clip(text: str, most: int) -> str:
    """Return `text` cleaned and at most so long."""
    text = clean(text)
    return text if len(text) <= most else text[: most - 1] + "…"


# ------------------------------------------------------------------------------------------------ terminal


def terminal(table: Table, width: int = WIDTH) -> str:
    """Return plain text of at most `width` columns: the grid in as many pieces as that takes."""
    parts = [part for g in table.grids for part in _grid_text(g, width)]
    if table.times:
        parts += ["Times", _times_text(table.times, width)]
    for section in table.sections:
        lines = [
            textwrap.fill(clean(line), width, initial_indent="  ", subsequent_indent="    ") for line in _cut(section)
        ]
        parts.append("\n".join((section.title, *lines)))
    return "\n\n".join(parts) + "\n"


def _grid_text(grid: Grid, width: int) -> Iterator[str]:
    yield f"{TITLES[grid.view]} (by {', '.join(grid.by)}; {FINER[grid.view]})"
    if not grid.rows:
        yield "  nothing here: no such cell was run"
        return
    room = max(12, min(30, (width - 24) // len(grid.by) - 2))
    names = [[clip(n, room) for n in row.names] for row in grid.rows]
    squares = [[_square_lines(s) for s in row.squares] for row in grid.rows]
    if grid.view is not View.KERNELS:
        names.append(["all", *[""] * (len(grid.by) - 1)])
        squares.append([s.share for s in grid.totals])
    heads = [_head(c, grid.columns) for c in grid.columns]
    taken = sum(_column_width(*column) + 2 for column in zip(grid.by, *names, strict=True))
    widths = [_column_width(head, *(row[i] for row in squares)) for i, head in enumerate(heads)]
    for piece in _pieces(widths, width - taken):
        rows = [[*name, *(row[i] for i in piece)] for name, row in zip(names, squares, strict=True)]
        yield _tabulate(rows, [*grid.by, *(heads[i] for i in piece)], "simple")


def _square_lines(square: Square) -> str:
    if square.total in (0, square.unavailable):
        return square.text
    return "\n".join((f"{square.evidence} {square.passed}/{square.total}", *square.marks))


def _head(column: Column, columns: Sequence[Column]) -> str:
    several = sum(c.target == column.target for c in columns) > 1
    lines = (column.target, column.title, f"in {column.environment}" if several else "")
    return "\n".join(clip(line, 20) for line in lines if line)


def _column_width(head: str, *texts: str) -> int:
    """How wide tabulate makes a column: it leaves room around the heading."""
    return max(_width(head) + MIN_PADDING, *map(_width, texts))


def _width(text: str) -> int:
    return max(map(len, text.split("\n")))


def _pieces(widths: Sequence[int], room: int) -> Iterator[list[int]]:
    """Yield the columns that fit beside each other in `room`; one at least."""
    piece: list[int] = []
    used = 0
    for i, w in enumerate(widths):
        if piece and used + w > room:  # no gap after the last
            yield piece
            piece, used = [], 0
        piece.append(i)
        used += w + 2
    if piece:
        yield piece


def _times_text(times: Sequence[Sequence[str]], width: int) -> str:
    (*_, _), *rows = times
    heads = ["cell", "target", "median", "spread", "rate", "against\ntorch", "of\nceiling"]
    room = max(20, width - 68)
    short = [[clip("-".join(r[:3]), room), clip(r[3], 16), *r[4:9]] for r in rows]
    ceilings = {f"  the ceiling of {clean(r[3])}: {clean(r[9])}" for r in rows if r[9] != "-"}
    return "\n".join((_tabulate(short, heads, "simple"), *sorted(ceilings)))


def _tabulate(rows: Sequence[Sequence[str]], heads: Sequence[str], form: str) -> str:
    return tabulate(rows, headers=list(heads), tablefmt=form, disable_numparse=True, stralign="left")


def _cut(section: Section) -> Iterator[str]:
    yield from section.lines[:MOST]
    if len(section.lines) > MOST:
        yield f"… and {len(section.lines) - MOST} more; --format json holds all of them"


# ------------------------------------------------------------------------------------------------ Markdown


def markdown(table: Table) -> str:
    """Return GitHub's Markdown; a table there is as wide as it is."""
    parts: list[str] = []
    for g in table.grids:
        heads = [*g.by, *(escape(" ".join(_head(c, g.columns).split("\n"))) for c in g.columns)]
        rows = [[*map(escape, row.names), *(escape(s.text) for s in row.squares)] for row in g.rows]
        if g.view is not View.KERNELS and rows:
            rows.append(["all", *[""] * (len(g.by) - 1), *(s.share for s in g.totals)])
        parts += [f"### {TITLES[g.view]}", _tabulate(rows, heads, "github") if rows else "No such cell was run."]
    if table.times:
        head, *times = table.times
        parts += ["### Times", _tabulate([[escape(v) for v in row] for row in times], head, "github")]
    parts += map(section_markdown, table.sections)
    return "\n\n".join(parts) + "\n"


def section_markdown(section: Section) -> str:
    """Return a section as a heading and a list."""
    return "\n".join((f"### {section.title}", "", *(f"- {escape(line)}" for line in _cut(section))))


def escape(text: str) -> str:
    """Return foreign text as Markdown that shows it and does nothing: no markup, no HTML, no link, nobody notified."""
    text = clean(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    text = re.sub(r"([\\`*\[\]|~$#])", r"\\\1", text)
    text = re.sub(r"(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])", r"\\_", text)  # within a word it is no emphasis
    text = text.replace("://", "&#58;//").replace("www.", "www&#46;")
    return text.replace("@", "@\u200b")  # a zero-width space: else @name notifies a person


# ------------------------------------------------------------------------------------------- for programs


def as_json(table: Table) -> str:
    """Return the table and all of its cells as JSON, ASCII alone."""
    data = {
        "format": FORMAT,
        "version": VERSION,
        "fails": table.fails,
        "grids": [_grid_data(g) for g in table.grids],
        "times": [dict(zip(table.times[0], row, strict=True)) for row in table.times[1:]],
        "sections": {s.title: list(s.lines) for s in table.sections},
        "cells": [_cell_data(e) for e in table.cells],
    }
    return json.dumps(data, indent=1) + "\n"


def _grid_data(grid: Grid) -> Mapping[str, Any]:
    return {
        "view": grid.view,
        "by": grid.by,
        "columns": [to_json(c) for c in grid.columns],
        "rows": [{"names": r.names, "squares": [_square_data(s) for s in r.squares]} for r in grid.rows],
        "totals": [_square_data(s) for s in grid.totals],
    }


def _square_data(square: Square) -> Mapping[str, Any]:
    names = ("text", "evidence", "passed", "total", "refused", "unavailable", "outcomes", "fails")
    return {name: to_json(getattr(square, name)) for name in names}


def _cell_data(entry: Entry) -> Mapping[str, Any]:
    run = entry.run.header
    return {
        "id": entry.cell.id,
        "standing": entry.verdict.standing,
        "why": entry.verdict.why,
        "run": run.run,
        "host": run.provenance.host,
        **to_json(entry.observation),
    }


def as_csv(table: Table) -> str:
    """Return a line a square: the view, what its row is made of, its column, and what it says."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(("view", *FIELDS, "target", "in", "evidence", "passed", "total", "fails", "text"))
    for grid in table.grids:
        for row in grid.rows:
            names = dict(zip(grid.by, row.names, strict=True))
            for column, s in zip(grid.columns, row.squares, strict=True):
                line: Iterable[object] = (
                    grid.view, *(names.get(f, "") for f in FIELDS), column.target, column.environment,
                    s.evidence, s.passed, s.total, str(s.fails).lower(), s.text,
                )  # fmt: skip
                writer.writerow([_harmless(str(value)) for value in line])
    return out.getvalue()


def _harmless(text: str) -> str:
    """A spreadsheet takes text that begins with one of these for a formula."""
    text = clean(text)
    return f"'{text}" if text[:1] in ("=", "+", "-", "@") else text


FORMS: Mapping[str, Callable[[Table, int], str]] = {
    "terminal": terminal,
    "markdown": lambda table, _: markdown(table),
    "json": lambda table, _: as_json(table),
    "csv": lambda table, _: as_csv(table),
}
