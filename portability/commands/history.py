"""Show how the runs in a folder changed, one row a run; or how one cell did.

Results files are looked for below the folder; other files of JSON lines are named, and left out.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from portability import diff, render
from portability.results import ResultsError, Run, read_runs
from portability.tomltable import nearest


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.add_argument("folder", type=Path)
    parser.add_argument("--cell", metavar="ID", help="only this cell, run by run")
    parser.add_argument("--format", default="terminal", choices=("terminal", "markdown"))


def main(args: argparse.Namespace) -> int:
    """Read every results file below the folder, and print."""
    if not args.folder.is_dir():
        raise ValueError(f"{args.folder}: {'no folder' if args.folder.exists() else 'no such folder'}")
    files = sorted(args.folder.rglob("*.jsonl"))
    runs = list(_runs(files))
    if not runs:
        raise ValueError(f"{args.folder}: no results file (*.jsonl) in it")
    rows = diff.history(runs)
    if args.cell:
        cell = next((o.cell for run in runs for o in run.observations if o.cell.id == args.cell), None)
        if cell is None:
            known = {o.cell.id for run in runs for o in run.observations}
            raise ValueError(f"--cell: {args.cell!r} is in none of {len(files)} files; {nearest(args.cell, known)}")
        found = diff.cell_history(runs, cell)
        rows = (
            ("when", "outcome", "evidence"),
            *((w, str(e.observation.outcome), str(e.observation.evidence)) for w, e in found),
        )
    print(render.rows_markdown(rows) if args.format == "markdown" else render.rows_text(rows))
    return 0


def _runs(files: Sequence[Path]) -> Iterator[Run]:
    """Yield the runs of those files that hold some."""
    for file in files:
        try:
            yield from read_runs(file)
        except ResultsError as error:
            print(f"portability history: left out: {error}", file=sys.stderr)
