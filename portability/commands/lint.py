"""Report what in Triton kernels is not portable, from their source alone: path:line:column CODE message.

Suppress a finding with `# noqa: TP401` on its line, or those of a file with `# portability: ignore-file[TP401]`. Exit
code 0 for nothing, 1 for findings, 2 where a file cannot be read. Rules and reasons: docs/rules.md, or --explain CODE.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from portability.lint.formatting import FORMATS, explanation, render
from portability.lint.model import registered
from portability.lint.run import lint_paths
from portability.tomltable import nearest


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.add_argument("paths", nargs="*", metavar="PATH", help="a Python file, or a folder that is searched for them")
    parser.add_argument("--select", action="append", default=[], metavar="CODES", help="only these: TP4,TP301")
    parser.add_argument("--ignore", action="append", default=[], metavar="CODES", help="not these")
    parser.add_argument("--format", choices=sorted(FORMATS), default="text")
    parser.add_argument("--explain", metavar="CODE", help="print a rule's reason and examples")


def main(args: argparse.Namespace) -> int:
    """Lint the paths, print the findings, and return the exit code. Raises `ValueError` for a code that is no rule."""
    if args.explain:
        rule = registered.get(args.explain.upper())
        if rule is None:
            raise ValueError(f"--explain: no rule {args.explain!r}; {nearest(args.explain, registered)}")
        sys.stdout.write(explanation(rule))
        return 0
    if not args.paths:
        raise ValueError("a path is needed: a Python file, or a folder")
    report = lint_paths(args.paths, _codes(args.select), _codes(args.ignore))
    sys.stdout.write(render(report, args.format))
    for file in report.unreadable:
        print(f"portability lint: {file.path}: {file.reason}", file=sys.stderr)
    if args.format == "text" and (report.files or not report.unreadable):
        found = f"{len(report.findings)} findings" if report.findings else "nothing found"
        print(f"{found} in {report.files} files with {report.kernels} kernels", file=sys.stderr)
    return report.exit_code


def _codes(given: Sequence[str]) -> list[str]:
    return [code.strip() for entry in given for code in entry.split(",") if code.strip()]
