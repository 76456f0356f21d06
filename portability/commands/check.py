"""Run a file of kernels under the checked interpreter, compile its launches for every target, and say what is wrong.

FILE.py defines run(dev), which launches kernels on tensors that it makes on that torch device and returns what they
computed, and ref(), which returns what that should be. data() may give the inputs of both; SPEC or SPECS name kernels
to compile without the wrapper. A file of kernel cases is taken as well.

FILE.json (or FILE.json.gz) holds launches that `portability record` recorded: each distinct one is compiled for every
target, in parallel, and judged against the target's limits. The table goes to a results file too.

Exit code 0 where nothing is found, 1 where something is, 2 where a file cannot be read, or its ref() raises.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

COMPILE_LIMIT = 300.0  # seconds
EVERY = 30.0  # seconds between two words on how far a check is, where nobody watches
READ = (".py", ".json", ".json.gz")  # kinds of files that can be checked


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
        "--compile-limit", type=float, default=COMPILE_LIMIT, metavar="S",
        help=f"seconds a file, or a recorded launch, may compile for one target (default: {COMPILE_LIMIT:g})",
    )  # fmt: skip
    parser.add_argument(
        "--matrix", type=Path, metavar="FILE", help="matrix.toml with adapters, environments and rules of its own"
    )
    recorded = parser.add_argument_group("recorded launches (FILE.json)")
    add_recorded_arguments(recorded)


def add_recorded_arguments(group: argparse._ActionsContainer) -> None:
    """Define the options that recorded launches are checked with."""
    group.add_argument(
        "--kernel", action="append", default=[], metavar="K", help="only this kernel (repeatable; a pattern may hold *)"
    )
    group.add_argument(
        "--configs", default="1", metavar="N",
        help="try an autotuned kernel's configurations until N of them pass, or `all` (default: 1)",
    )  # fmt: skip
    group.add_argument(
        "-n", "--workers", type=int, default=None, metavar="N", help="compile so many at a time (default: the cores)"
    )
    group.add_argument(
        "--interpret", action="store_true",
        help="also interpret launches whose tensors are small enough, on drawn values: bounds, races, undefined values",
    )  # fmt: skip
    group.add_argument("--first", action="store_true", help="check each kernel's first launch alone")
    written = group.add_mutually_exclusive_group()
    written.add_argument("--results", type=Path, metavar="FILE", help="where to write the results (JSON Lines)")
    written.add_argument("--resume", type=Path, metavar="FILE", help="go on with an interrupted check's results")


def main(args: argparse.Namespace) -> int:
    """Check, print, and return the report's exit code."""
    for file in args.files:
        if file.is_dir():
            raise ValueError(
                f"{file}: a folder; a file is checked ({', '.join(READ)}); `portability lint` reads a folder, and "
                "`portability scan` runs a package"
            )
        if not file.name.endswith(READ):
            raise ValueError(
                f"{file}: cannot check a {file.suffix or 'file without a suffix'}; {', '.join(READ)} can be"
            )
    kinds = {".py" if file.suffix == ".py" else ".json" for file in args.files}
    if len(kinds) > 1:
        raise ValueError(f"{', '.join(map(str, args.files))}: either kernels or recorded launches, not both at once")
    return check_recorded(args, args.files) if kinds == {".json"} else _check_files(args)


def _check_files(args: argparse.Namespace) -> int:
    from portability.checks.rendering import render
    from portability.checks.session import Request, check_files
    from portability.matrix import read_matrix
    from portability.plugin import find_matrix

    path = args.matrix or find_matrix(Path.cwd())
    request = Request(tuple(args.target), args.run_limit, args.compile_limit, not args.no_rules)
    say = _progress if sys.stderr.isatty() else lambda _: None
    report = check_files(args.files, request, read_matrix(path) if path else None, say)
    if sys.stderr.isatty():
        _progress("")
    print(render(report, "json" if args.json else "text"), end="")
    return report.exit_code


def check_recorded(args: argparse.Namespace, files: list[Path]) -> int:
    """Check recorded launches, print, and return the exit code."""
    from portability.matrix import read_matrix
    from portability.plugin import new_results
    from portability.record.check import Request, check, exit_code
    from portability.record.model import read
    from portability.record.rendering import json_text, text

    if args.configs != "all" and not args.configs.isdigit():
        raise ValueError(f"--configs: {args.configs!r} is neither a number nor `all`")
    configs = 0 if args.configs == "all" else max(1, int(args.configs))
    workers = args.workers or len(os.sched_getaffinity(0))
    request = Request(
        tuple(args.target), args.compile_limit, configs, tuple(args.kernel), workers, args.interpret, args.first,
        args.resume is not None,
    )  # fmt: skip
    began = time.monotonic()
    say = _progress if sys.stderr.isatty() else _now_and_then()
    results = args.resume or args.results or new_results(Path.cwd())
    matrix = read_matrix(args.matrix) if args.matrix else None
    recordings = [read(f) for f in files]
    run = check(recordings, request, results, matrix, say)
    if sys.stderr.isatty():
        _progress("")
    seconds = time.monotonic() - began
    print(json_text(run) if args.json else text(run, recordings, seconds, os.path.relpath(results)), end="")
    return exit_code(run)


def _now_and_then() -> Callable[[str], None]:
    """Return what says where a long check is, a line at a time, in a log."""
    said = time.monotonic()

    def say(words: str) -> None:
        nonlocal said
        if time.monotonic() - said > EVERY:
            said = time.monotonic()
            print(words, file=sys.stderr, flush=True)

    return say


def _progress(words: str) -> None:
    sys.stderr.write(f"\r\033[K{words}")
    sys.stderr.flush()
