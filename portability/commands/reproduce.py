"""Write one Python file that shows a failure of the matrix without this package, for a report to another project.

CELL is an id as pytest and the table show it; with --launches, one of recorded launches. The failure is made smaller
first: a plainer dtype, a smaller sample, smaller sizes and blocks, as long as outcome, line and words stay. The file
holds the kernel with its helpers, and is run before it is handed over. What failed to compile is compiled by
triton.compile, with no GPU; wrong values are computed by Triton's own interpreter, or on the device where they were
seen.

Exit code 0 where the file shows the failure, 1 where it does not, 2 where nothing could be written.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from portability.matrix import Matrix, read_matrix
from portability.plugin import find_matrix

if TYPE_CHECKING:
    from portability.harness import Harness
    from portability.reproducer.session import Session


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.add_argument("cell", metavar="CELL", help="its id: matmul-float16-257x129x65-hip:gfx942")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FILE", help="the file to write")
    parser.add_argument(
        "--results", type=Path, action="append", default=[], metavar="FILE",
        help="say what these results have of the cell (default: the newest in .portability/, if there is one)",
    )  # fmt: skip
    parser.add_argument(
        "--launches", type=Path, action="append", default=[], metavar="FILE",
        help="the cell is one of `portability check FILE`: a recorded launch on a target (repeatable)",
    )  # fmt: skip
    parser.add_argument(
        "--budget",
        type=float,
        default=120.0,
        metavar="S",
        help="seconds to make it smaller (default: 120; 0: as it is)",
    )
    parser.add_argument("--quiet", action="store_true", help="do not say what is tried")
    parser.add_argument("--matrix", type=Path, metavar="FILE", help="matrix.toml (default: the nearest one)")


def main(args: argparse.Namespace) -> int:
    """Write the file, and say what it shows. Raises `ValueError` for a cell that is none, or does not fail."""
    from portability.harness import Harness
    from portability.pool import temporary_folder

    _recorded(args)
    path = args.matrix or find_matrix(Path.cwd())
    with temporary_folder() as folder:
        harness = Harness(read_matrix(path) if path else Matrix(), folder, Path.cwd(), {"timing": False})
        try:
            say = _quiet if args.quiet else _say
            made = _session(harness, args, say).reproduce(args.output)
        finally:
            harness.close()
    print(f"{made.file}: {made.seen.outcome}, after {made.tried} smaller ones were tried")
    print("\n".join(f"  {line}" for line in made.said.splitlines()[:12]))
    print("the file shows the failure" if made.shown else "the file does not show the failure; it says so")
    return 0 if made.shown else 1


def _session(harness: Harness, args: argparse.Namespace, say: Callable[[str], None]) -> Session:
    if args.launches:
        from portability.record.model import read
        from portability.reproducer import recorded

        found = recorded.find(harness, [read(f) for f in args.launches], args.cell)
        return recorded.RecordedSession(harness, found, args.budget, say)
    from portability.reproducer.session import Session, find

    return Session(harness, find(harness, args.cell), args.budget, say)


def _recorded(args: argparse.Namespace) -> None:
    """Say what the results have of the cell: what is seen here may be another failure."""
    from portability.commands.explain import newest
    from portability.reproducer.session import recorded
    from portability.results import read_runs

    files = args.results or (newest(Path(".portability")) if any(Path(".portability").glob("*.jsonl")) else [])
    seen = recorded([run for file in files for run in read_runs(file)], args.cell)
    if seen is not None:
        _say(f"recorded: {seen.outcome}{f' at {seen.line}' if seen.line else ''}, {seen.when}")
    elif args.results:
        raise ValueError(f"no cell {args.cell!r} in {', '.join(map(str, args.results))}")


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _quiet(line: str) -> None:
    """Say nothing."""
