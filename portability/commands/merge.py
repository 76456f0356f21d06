"""Join results files of several machines into one: the newest observation per cell, Triton version and device.

Where the same cell came out differently on the same device and version, both stay in the file and are shown.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from portability import merge as merging
from portability import results


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FILE")


def main(args: argparse.Namespace) -> int:
    """Merge and write; 1 if there are conflicts, so that a script sees them."""
    merged = merging.merge(run for file in args.files for run in results.read_runs(file))
    results.write_runs(args.output, merged.parts())
    counts = f"{len(merged.entries)} observations of {len(merged.runs)} runs, {len(merged.conflicts)} in conflict"
    print(f"{args.output}: {counts}")
    return 1 if merged.conflicts else 0
