"""A table as text: for a terminal, as Markdown, JSON or CSV.

A renderer only renders, and makes foreign text harmless (see `portability.text`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from tabulate import MIN_PADDING

from portability.export import as_csv, as_json
from portability.table import Column, Grid, Square, Table, TableError, View
from portability.text import (
    WIDTH,
    aligned,
    clean,
    clip,
    clip_apart,
    escape,
    render_sections,
    rows_markdown,
    rows_text,
    section_markdown,
    section_text,
)

__all__ = ["FORMS", "WIDTH", "markdown", "render", "render_sections", "rows_markdown", "rows_text", "terminal"]

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


# ------------------------------------------------------------------------------------------------ terminal


def terminal(table: Table, width: int = WIDTH) -> str:
    """Return plain text of at most `width` columns: the grid in as many pieces as that takes."""
    parts = [part for g in table.grids for part in _grid_text(g, width)]
    if table.times:
        parts += ["Times", _times_text(table.times, width)]
    parts += [section_text(section, width) for section in table.sections]
    return "\n\n".join(parts) + "\n"


def _grid_text(grid: Grid, width: int) -> Iterator[str]:
    yield f"{TITLES[grid.view]} (by {', '.join(grid.by)}; {FINER[grid.view]})"
    if not grid.rows:
        yield "  nothing here: no such cell was run"
        return
    room = max(12, min(30, (width - 24) // len(grid.by) - 2))
    columns = [clip_apart(of, room) for of in zip(*(row.names for row in grid.rows), strict=True)]
    names = [list(of) for of in zip(*columns, strict=True)]
    squares = [[_square_lines(s, grid.view) for s in row.squares] for row in grid.rows]
    if grid.view is not View.KERNELS:
        names.append(["all", *[""] * (len(grid.by) - 1)])
        squares.append([s.share for s in grid.totals])
    heads = [_head(c, grid.columns) for c in grid.columns]
    taken = sum(_column_width(*column) + 2 for column in zip(grid.by, *names, strict=True))
    widths = [_column_width(head, *(row[i] for row in squares)) for i, head in enumerate(heads)]
    for piece in _pieces(widths, width - taken):
        rows = [[*name, *(row[i] for i in piece)] for name, row in zip(names, squares, strict=True)]
        yield aligned(rows, [*grid.by, *(heads[i] for i in piece)], "simple")


def _square_lines(square: Square, view: View) -> str:
    if square.total in (0, square.unavailable):
        return square.text
    if view is View.API:
        return "\n".join((square.share, f"{square.passed}/{square.total}", *square.notes))
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
    return "\n".join((aligned(short, heads, "simple"), *sorted(ceilings)))


# ------------------------------------------------------------------------------------------------ Markdown


def markdown(table: Table) -> str:
    """Return GitHub's Markdown; a table there is as wide as it is."""
    parts: list[str] = []
    for g in table.grids:
        heads = [*g.by, *(escape(" ".join(_head(c, g.columns).split("\n"))) for c in g.columns)]
        rows = [[*map(escape, row.names), *(escape(_square_text(s, g.view)) for s in row.squares)] for row in g.rows]
        if g.view is not View.KERNELS and rows:
            rows.append(["all", *[""] * (len(g.by) - 1), *(s.share for s in g.totals)])
        parts += [f"### {TITLES[g.view]}", aligned(rows, heads, "github") if rows else "No such cell was run."]
    if table.times:
        parts += ["### Times", rows_markdown(table.times)]
    parts += map(section_markdown, table.sections)
    return "\n\n".join(parts) + "\n"


def _square_text(square: Square, view: View) -> str:
    return square.shared if view is View.API else square.text


FORMS: Mapping[str, Callable[[Table, int], str]] = {
    "terminal": terminal,
    "markdown": lambda table, _: markdown(table),
    "json": lambda table, _: as_json(table),
    "csv": lambda table, _: as_csv(table),
}
