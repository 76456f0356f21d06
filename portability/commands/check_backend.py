"""Hold an adapter against the contract: detection, claims, limits, launches, time, memory, blocks, and what crosses.

NAME is a bundled adapter, one of another distribution's entry point, or one whose module matrix.toml names. Each check
passes, fails, or cannot be had here, with the reason; what opens a target is made in the adapter's own environment, in
a process that may crash.

Exit code 0 where no check fails, 1 where one does, 2 for a name that is none.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from portability.conformance.model import Result

FORMATS = ("text", "json")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.add_argument("name", metavar="NAME")
    parser.add_argument("--target", action="append", default=[], metavar="T", help="only this target (repeatable)")
    parser.add_argument("--format", choices=FORMATS, default="text")
    parser.add_argument("--matrix", type=Path, metavar="FILE", help="matrix.toml (default: the nearest one)")


def main(args: argparse.Namespace) -> int:
    """Check, print, and return 1 where a check fails. Raises `MatrixError` for a name that is none."""
    from portability.conformance.kit import check_backend
    from portability.conformance.model import Verdict
    from portability.matrix import read_matrix
    from portability.paths import importable

    say = _progress if sys.stderr.isatty() else lambda _: None
    matrix = read_matrix(args.matrix) if args.matrix else None
    if args.matrix:
        importable(args.matrix.resolve().parent)
    results = check_backend(args.name, args.target, matrix, say)
    if sys.stderr.isatty():
        _progress("")
    render = {"text": _text, "json": _json}[args.format]
    print("\n".join(render(args.name, results)))
    return int(any(r.verdict is Verdict.FAIL for r in results))


def _text(name: str, results: Sequence[Result]) -> Iterator[str]:
    from portability.conformance.model import CHECKS, Verdict

    for check, held in CHECKS.items():
        yield f"{check}: {held}"
        groups: dict[tuple[str, str], list[str]] = {}
        for r in (r for r in results if r.check == check):
            groups.setdefault((r.verdict, r.reason), []).append(r.target)
        for (verdict, reason), targets in groups.items():
            place = f"{', '.join(filter(None, targets))}: " if any(targets) else ""
            yield f"  {verdict}: {place}{reason}"
    counts = [f"{sum(r.verdict is v for r in results)} {v}" for v in Verdict]
    yield f"\n{name}: {', '.join(counts)}"


def _json(name: str, results: Sequence[Result]) -> Iterator[str]:
    from portability.conformance.model import VERSION
    from portability.model import to_json

    yield json.dumps({"version": VERSION, "backend": name, "results": [to_json(r) for r in results]}, indent=1)


def _progress(words: str) -> None:
    sys.stderr.write(f"\r\033[K{words}")
    sys.stderr.flush()
