"""A table for programs: JSON with every cell, and CSV with a line a square."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping
from typing import Any

from portability.merge import Entry
from portability.model import to_json
from portability.table import FIELDS, Grid, Square, Table
from portability.text import clean

FORMAT = "portability-table"
VERSION = 1  # of the JSON form


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
    names = (
        "text",
        "evidence",
        "passed",
        "total",
        "percent",
        "emulated",
        "refused",
        "unavailable",
        "outcomes",
        "fails",
    )
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
