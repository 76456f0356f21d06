"""Run a file of kernels under the checked interpreter, compile its launches for every target, and say what is wrong.

FILE defines run(dev), which launches kernels on tensors that it makes on that torch device and returns what they
computed, and ref(), which returns what that should be. data() may give the inputs of both; SPEC or SPECS name kernels
to compile without the wrapper. A file of kernel cases is taken as well.

Exit code 0 where nothing is found, 1 where something is, 2 where a file cannot be read, or its ref() raises.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

READ = (".py",)  # kinds of files that can be checked


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    parser.add_argument(
        "--target", action="append", default=[], metavar="T", help="only this target (repeatable; a pattern may hold *)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--no-rules", action="store_true", help="leave the static rules out")
    parser.add_argument(
        "--run-limit", type=float, default=120.0, metavar="S", help="seconds a file may run (default: 120)"
    )
    parser.add_argument(
        "--compile-limit", type=float, default=300.0, metavar="S", help="seconds it may compile for one target"
    )
    parser.add_argument(
        "--matrix", type=Path, metavar="FILE", help="matrix.toml with adapters and environments of its own"
    )


def main(args: argparse.Namespace) -> int:
    """Check, print, and return the report's exit code."""
    from portability.checks.rendering import render
    from portability.checks.session import Request, check_files
    from portability.matrix import read_matrix
    from portability.plugin import find_matrix

    for file in args.files:
        if file.suffix not in READ:
            raise ValueError(
                f"{file}: cannot check a {file.suffix or 'file without a suffix'}; {', '.join(READ)} can be"
            )
    path = args.matrix or find_matrix(Path.cwd())
    request = Request(tuple(args.target), args.run_limit, args.compile_limit, not args.no_rules)
    say = _progress if sys.stderr.isatty() else lambda _: None
    report = check_files(args.files, request, read_matrix(path) if path else None, say)
    if sys.stderr.isatty():
        _progress("")
    print(render(report, "json" if args.json else "text"), end="")
    return report.exit_code


def _progress(words: str) -> None:
    sys.stderr.write(f"\r\033[K{words}")
    sys.stderr.flush()
