"""Print the table of results files: several files, of several machines, become one table."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from portability import render, report, results
from portability.matrix import Matrix, never_matched
from portability.merge import merge
from portability.model import Expectation
from portability.results import Run
from portability.table import FIELDS, View


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="results of runs (JSON Lines)")
    parser.add_argument("--format", default="terminal", metavar="F", help=", ".join(render.FORMS))
    parser.add_argument("--view", action="append", default=[], choices=[str(v) for v in View])
    parser.add_argument("--group-by", default="", metavar="FIELDS", help=f"rows, some of {', '.join(FIELDS)}")
    parser.add_argument("--omit", action="append", default=[], metavar="TARGET", help="leave a column out")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="write there instead of printing")


def main(args: argparse.Namespace) -> int:
    """Read, merge, print; a table that shows a failure is still a table."""
    runs = [run for file in args.files for run in results.read_runs(file)]
    by = tuple(filter(None, args.group_by.split(",")))
    table = report.build(merge(runs), [View(v) for v in args.view], by, unmatched(runs), args.omit)
    text = render.render(table, args.format)
    if args.output:
        args.output.write_text(text if text.endswith("\n") else text + "\n", encoding="utf-8")
    else:
        print(text)
    return 0


def show(runs: Sequence[Run], form: str) -> int:
    """Print the table of runs, and return the exit code that they come to."""
    lost = unmatched(runs)
    print(render.render(report.build(merge(runs), unmatched=lost), form))
    return results.exit_code(runs, lost)


def unmatched(runs: Sequence[Run]) -> list[Expectation]:
    """Return the rules that can match no cell of any run."""
    found = []
    for run in runs:
        matrix = Matrix(expectations=run.header.expectations)
        found += never_matched(matrix, run.observations, run.header.cases)
    return list(dict.fromkeys(found))
