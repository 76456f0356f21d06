"""Compare two results files cell by cell: regressed, fixed, newly untested, changed by version, slower beyond noise.

Exit code 1 if anything became worse.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from portability import diff as differences
from portability import render
from portability.merge import merge
from portability.results import read_runs


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--format", default="terminal", choices=("terminal", "markdown", "json"))


def main(args: argparse.Namespace) -> int:
    """Compare and print."""
    found = differences.diff(merge(read_runs(args.old)), merge(read_runs(args.new)))
    print(render.render_sections(found.sections, args.format), end="")
    return found.exit_code
