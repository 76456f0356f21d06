"""Print the table of results files: several files, of several machines, become one table.

html writes a page with its badge and results into the folder of --output; github prints annotations for a CI job, and
adds the table to the job's page ($GITHUB_STEP_SUMMARY).
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from portability import render, report, results
from portability.matrix import Matrix, never_matched
from portability.merge import Merged, merge
from portability.model import Expectation
from portability.results import Run
from portability.table import FIELDS, Table, TableError, View

FORMS = (*render.FORMS, "html", "github", "badge")
SUMMARY = "GITHUB_STEP_SUMMARY"  # the file that a job's page is made from


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="results of runs (JSON Lines)")
    parser.add_argument("--format", default="terminal", choices=FORMS, metavar="F", help=", ".join(FORMS))
    parser.add_argument("--view", action="append", default=[], choices=[str(v) for v in View])
    parser.add_argument("--group-by", default="", metavar="FIELDS", help=f"rows, some of {', '.join(FIELDS)}")
    parser.add_argument("--omit", action="append", default=[], metavar="TARGET", help="leave a column out")
    parser.add_argument(
        "-o", "--output", type=Path, metavar="PATH", help="write there instead of printing; html: a folder"
    )
    parser.add_argument("--title", default="", metavar="TEXT", help="the page's heading")
    parser.add_argument(
        "--update",
        type=Path,
        metavar="FILE",
        help="write the table into FILE, between <!-- table --> and <!-- /table -->",
    )
    parser.add_argument(
        "--check", action="store_true", help="with --update: write nothing; exit code 1 if it is out of step"
    )


def main(args: argparse.Namespace) -> int:
    """Read, merge, print; a table that shows a failure is still a table."""
    runs = [run for file in args.files for run in results.read_runs(file)]
    by = tuple(filter(None, args.group_by.split(",")))
    merged = merge(runs)
    table = report.build(merged, [View(v) for v in args.view], by, unmatched(runs), args.omit)
    if args.check and not args.update:
        raise TableError("--check needs --update FILE")
    if args.update:
        return _update(args.update, table, check=args.check)
    if args.format == "html":
        return _write_site(args, merged, table)
    text = _render(table, args.format)
    if args.output:
        args.output.write_text(text, encoding="utf-8")
    else:
        print(text, end="")
    return 0


def _render(table: Table, form: str) -> str:
    if form == "badge":
        from portability.site.badge import render_badge

        return render_badge(table)
    if form == "github":
        from portability.site import github

        if SUMMARY in os.environ:
            with open(os.environ[SUMMARY], "a", encoding="utf-8") as page:
                page.write(github.summary(table))
        return github.workflow_commands(table)
    text = render.render(table, form)
    return text if text.endswith("\n") else text + "\n"


def _write_site(args: argparse.Namespace, merged: Merged, table: Table) -> int:
    if args.output is None:
        raise TableError("--format html needs --output FOLDER")
    from portability.site import pictures
    from portability.site.page import TITLE
    from portability.site.write import write_site

    page = write_site(args.output, merged, table, args.omit, args.title or TITLE)
    number = len(table.cells)
    print(f"{page}: {number} {'cell' if number == 1 else 'cells'}")
    if not pictures.available():
        print(
            "without pictures, for which matplotlib is missing: pip install 'triton-portability[html]'", file=sys.stderr
        )
    return 0


def _update(path: Path, table: Table, *, check: bool) -> int:
    from portability.site import markers

    if check:
        same = markers.in_step(path, table)
        print(f"{path}: {'in step' if same else 'out of step; without --check it is written'}")
        return 0 if same else 1
    print(f"{path}: {'written' if markers.update(path, table) else 'was in step'}")
    return 0


def show(runs: Sequence[Run], form: str) -> int:
    """Print the table of runs, and return the exit code that they come to."""
    lost = unmatched(runs)
    restricted = any(run.header.selection.targets or run.header.selection.backends for run in runs)
    seen = {o.cell.target for run in runs for o in run.observations}
    omit = {t.id for run in runs for t in run.header.targets} - seen if restricted else set()
    print(_render(report.build(merge(runs), unmatched=lost, omit=omit), form), end="")
    return results.exit_code(runs, lost)


def unmatched(runs: Sequence[Run]) -> list[Expectation]:
    """Return the rules that can match no cell of any run."""
    found = []
    for run in runs:
        matrix = Matrix(expectations=run.header.expectations)
        found += never_matched(matrix, run.observations, run.header.cases)
    return list(dict.fromkeys(found))
