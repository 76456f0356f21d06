"""Show how the runs in a folder changed, one row a run; or how one cell did."""

from __future__ import annotations

import argparse
from pathlib import Path

from portability import diff, render
from portability.results import Run, read_runs


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.add_argument("folder", type=Path)
    parser.add_argument("--cell", metavar="ID", help="only this cell, run by run")
    parser.add_argument("--format", default="terminal", choices=("terminal", "markdown"))


def main(args: argparse.Namespace) -> int:
    """Read every results file below the folder, and print."""
    files = sorted(args.folder.rglob("*.jsonl"))
    if not files:
        raise ValueError(f"{args.folder}: no results file (*.jsonl) in it")
    runs: list[Run] = [run for file in files for run in read_runs(file)]
    rows = diff.history(runs)
    if args.cell:
        cell = next((o.cell for run in runs for o in run.observations if o.cell.id == args.cell), None)
        if cell is None:
            raise ValueError(f"--cell: {args.cell!r} is in none of {len(files)} files")
        found = diff.cell_history(runs, cell)
        rows = (
            ("when", "outcome", "evidence"),
            *((w, str(e.observation.outcome), str(e.observation.evidence)) for w, e in found),
        )
    print(render.rows_markdown(rows) if args.format == "markdown" else render.rows_text(rows))
    return 0
