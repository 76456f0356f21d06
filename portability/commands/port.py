"""Say what a kernel of one target needs on another: moves as it is, needs these blocks, or needs these changes.

KERNEL is a case's name, a file of kernel cases (of any project; the nearest matrix.toml above it is read), FILE.py:NAME
for one of them, a file that launches kernels itself, as `portability check` takes it, or FILE.json, launches that
`portability record` recorded (FILE.json:NAME for those of one kernel; a pattern may hold *). In four steps: the
environment; what compiles with the source's blocks, and what does not, and why; operations and layouts that are special
to the source, and what will differ without a word; and the blocks that fit, searched by compiling (by time where the
hardware is) and checked on the interpreter.

Exit code 0 where it moves as it is, 1 where it needs blocks or changes, 2 where nothing can be told here.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from portability.porting.model import Report
    from portability.porting.session import Request

FORMATS = ("text", "markdown", "json")
RECORDED = re.compile(r"(.+\.json(?:\.gz)?)(?::(.+))?")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.add_argument("kernel", metavar="KERNEL", help="a name, FILE.py, or FILE.json; FILE:NAME for one of it")
    parser.add_argument("--from", dest="source", required=True, metavar="T", help="the target that it is written for")
    parser.add_argument("--to", dest="destination", required=True, metavar="T", help="the target that it shall run on")
    parser.add_argument("--dtype", action="append", default=[], metavar="D", help="only this dtype (repeatable)")
    parser.add_argument(
        "--most", type=int, default=16, metavar="N", help="try at most N configurations a dtype (default 16; 0: none)"
    )
    parser.add_argument(
        "--no-names", action="store_true", help="do not look up the names of the language that the kernel uses"
    )
    parser.add_argument("--quick", action="store_true", help="try the quick sample alone, in place of every one")
    parser.add_argument("--write", action="store_true", help="put the blocks into the destination's block table")
    parser.add_argument("--format", choices=FORMATS, default="text")
    parser.add_argument("--matrix", type=Path, metavar="FILE", help="matrix.toml (default: the nearest one)")


def main(args: argparse.Namespace) -> int:
    """Port, print, and return the exit code of the worst. Raises `ValueError` for names that are nothing."""
    from portability.porting.rendering import render
    from portability.porting.session import Request

    if args.most < 0:
        raise ValueError(f"--most: {args.most}: a count of 0 or more is needed")
    request = Request(args.source, args.destination, tuple(args.dtype), args.most, not args.no_names, args.quick)
    reports = _reports(args, request)
    if sys.stderr.isatty():
        _progress("")
    print(render(reports, args.format), end="")
    return max((r.exit_code for r in reports), default=2)


def _reports(args: argparse.Namespace, request: Request) -> Sequence[Report]:
    from portability.pool import temporary_folder
    from portability.porting.loose import port_file
    from portability.porting.session import Porting, harness_for, in_folder
    from portability.porting.subject import find
    from portability.porting.verdict import write

    say = _progress if sys.stderr.isatty() else lambda _: None
    if found := RECORDED.fullmatch(args.kernel):
        return _recorded(args, request, Path(found[1]), (found[2],) if found[2] else ())
    subject = find(args.kernel, args.matrix, Path.cwd())
    with temporary_folder() as temporary, in_folder(subject.root):
        if subject.loose:
            if args.write:
                raise ValueError(f"--write: {args.kernel} names its blocks itself, and no table has them")
            return [port_file(subject, request, temporary, say)]
        harness = harness_for(subject, temporary)
        try:
            reports = Porting(harness, subject, request, say).reports()
            return [write(r, harness) for r in reports] if args.write else reports
        finally:
            harness.close()


def _recorded(args: argparse.Namespace, request: Request, file: Path, kernels: tuple[str, ...]) -> Sequence[Report]:
    from portability.matrix import Matrix, read_matrix
    from portability.plugin import find_matrix
    from portability.pool import temporary_folder
    from portability.porting.recorded import port_recording

    if args.write:
        raise ValueError(f"--write: the launches of {args.kernel} name their blocks themselves, and no table has them")
    path = args.matrix or find_matrix(Path.cwd())
    say = _progress if sys.stderr.isatty() else lambda _: None
    with temporary_folder() as temporary:
        matrix = read_matrix(path) if path else Matrix()
        return port_recording(file, request, matrix, temporary, say, kernels)


def _progress(words: str) -> None:
    sys.stderr.write(f"\r\033[K{words}")
    sys.stderr.flush()
