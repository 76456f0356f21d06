"""Run the matrix through pytest, and print the table.

Exit code 0 if everything is as declared, 1 for a finding, a regression or a stale rule, 2 for bad input or where
nothing could run. What is not an option here goes to pytest: `portability run softmax -- -x -k float16`.
"""

from __future__ import annotations

import argparse
import os
import sys
from importlib.metadata import entry_points
from pathlib import Path

PLUGIN = "portability.plugin"  # as pyproject.toml has it among pytest's entry points


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.add_argument("kernels", nargs="*", metavar="KERNEL", help="kernel cases; a pattern may hold *")
    parser.add_argument("--backend", action="append", default=[], metavar="B", help="only this backend (repeatable)")
    parser.add_argument("--target", action="append", default=[], metavar="T", help="only this target (repeatable)")
    parser.add_argument("--dtype", action="append", default=[], metavar="D", help="only this dtype (repeatable)")
    help_ = "only this environment: 'default', or one of `portability env list` (repeatable)"
    parser.add_argument("--environment", action="append", default=[], metavar="E", help=help_)
    parser.add_argument("--full", action="store_true", help="every sample, dtype and probe on every target")
    help_ = "one sample everywhere; every one where values are computed; every one everywhere (default: matrix.toml's)"
    parser.add_argument("--samples", choices=("quick", "default", "full"), help=help_)
    parser.add_argument("--no-timing", action="store_true", help="leave bench samples out")
    parser.add_argument("--matrix", type=Path, metavar="FILE", help="matrix.toml (default: the nearest one)")
    parser.add_argument("--results", type=Path, metavar="FILE", help="where to write the run's JSON Lines")
    parser.add_argument("--resume", type=Path, metavar="FILE", help="go on with an interrupted run")
    parser.add_argument("--format", default="terminal", metavar="F", help="of the table: terminal, markdown, json, csv")
    parser.add_argument("-n", default="auto", metavar="N", help="workers (default: auto; 0: none)")


def main(args: argparse.Namespace) -> int:
    """Run, print, and judge by the file."""
    import pytest

    from portability import plugin, testing
    from portability.commands import table
    from portability.results import read_run, read_runs

    matrix = args.matrix or plugin.find_matrix(Path.cwd())
    if matrix is None or not matrix.is_file():
        raise ValueError(f"no {matrix or 'matrix.toml'} here or above; an empty file takes every default")
    if args.resume:
        read_run(args.resume)  # refused here if it is no run, before anything is started
    results = args.resume or args.results or plugin.new_results(matrix.resolve().parent)
    os.environ[plugin.MATRIX] = str(matrix.resolve())
    pytest.main([*_options(args, results, matrix), str(testing.__file__), *args.rest])
    if not results.exists():
        return 2  # nothing was run, and pytest has said why
    runs = read_runs(results)
    code = table.show(runs, args.format)
    if runs[-1].interrupted:
        print(f"interrupted; to go on: portability run … --resume {os.path.relpath(results)}", file=sys.stderr)
        return code or 1
    return code


def _options(args: argparse.Namespace, results: Path, matrix: Path) -> list[str]:
    made = ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # this package is imported before pytest starts
    made += ["-q", "--no-header", "--tb=line", "-rN", f"--rootdir={matrix.resolve().parent}", "-p", "no:cacheprovider"]
    made += _plugin()
    made += [f"-n{args.n}"] if args.n != "0" else []
    made += [f"--resume={results}"] if args.resume else [f"--results={results}"]
    for name in ("backend", "target", "dtype", "environment"):
        made += [f"--{name}={value}" for value in getattr(args, name)]
    made += [f"--kernel={k}" for k in args.kernels]
    made += ["--full"] if args.full else []
    made += [f"--samples={args.samples}"] if args.samples else []
    return [*made, *(["--no-timing"] if args.no_timing else [])]


def _plugin() -> list[str]:
    """Name the plugin where pytest does not find it by itself: this package is on the path and not installed."""
    found = any(e.value == PLUGIN for e in entry_points(group="pytest11"))
    return [] if found and not os.environ.get("PYTEST_DISABLE_PLUGIN_AUTOLOAD") else ["-p", PLUGIN]
