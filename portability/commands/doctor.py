"""Say for each backend what it can do here (run, interpret, compile, lower), by which versions, and what gives more."""

from __future__ import annotations

import argparse
import os
from importlib.metadata import distributions
from pathlib import Path

from portability.model import Evidence, Target
from portability.pool import SCRUBBED, temporary_folder

VERBS = {
    Evidence.RAN: "runs",
    Evidence.EMULATED: "emulates",
    Evidence.INTERPRETED: "interprets",
    Evidence.COMPILED: "compiles",
    Evidence.LOWERED: "lowers",
    Evidence.NONE: "unavailable",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.add_argument("--matrix", type=Path, metavar="FILE", help="matrix.toml (default: the nearest one)")


def main(args: argparse.Namespace) -> int:
    """Ask every adapter, and print what it says."""
    from tabulate import tabulate

    from portability.harness import Harness
    from portability.matrix import Matrix, read_matrix
    from portability.plugin import find_matrix

    path = args.matrix or find_matrix(Path.cwd())
    matrix = read_matrix(path) if path else Matrix()
    with temporary_folder() as folder:
        harness = Harness(matrix, folder, Path.cwd(), {})
        try:
            catalogue = harness.catalogue
        finally:
            harness.close()
    print(", ".join(f"{k} {v}" for k, v in catalogue.versions.items()))
    rows, heads = [_row(t) for t in catalogue.targets], ("backend", "target", "", "here", "why, and what gives more")
    print(tabulate(rows, headers=heads, maxcolwidths=[None, None, 18, None, 60]))
    for line in [*_owners(), *_variables(), *(f"{m}: cannot be imported: {e}" for m, e in catalogue.errors.items())]:
        print(line)
    return 0 if any(t.evidence is not Evidence.NONE for t in catalogue.targets) else 2


def _row(target: Target) -> tuple[str, str, str, str, str]:
    device = f" on {target.device}" if target.device else ""
    more = f"{target.why}; next: {target.remedy}" if target.remedy else target.why
    return target.backend, target.id, target.title, VERBS[target.evidence] + device, more


def _owners() -> list[str]:
    """Two distributions that both own the package `triton` overwrite each other's files."""
    owners = sorted({
        f"{d.metadata['Name']} {d.version}" for d in distributions()
        if any(str(f).startswith("triton/__init__") for f in d.files or ())
    })  # fmt: skip
    if len(owners) < 2:
        return []
    return [
        f"warning: {' and '.join(owners)} both own the package 'triton': reinstall one in an environment of its own"
    ]


def _variables() -> list[str]:
    found = sorted(n for n in os.environ if SCRUBBED.match(n) and n != "PYTHONSTARTUP")
    return (
        [f"note: {', '.join(found)} of this shell are set aside for cells, so that results do not depend on them"]
        if found
        else []
    )
