"""Print the blocks that were tried by hand on a device, the fastest first.

    python benchmarks/trials.py [WORK...] [--most N] [--file results/trials.json]

The trials led to the entries of the block tables that say `time on an H200`. `KIND` tells variants of a kernel from
each other: pointers from descriptors made in the kernel, and those that are kept. One work's rows of one kind were
taken in one run; where a search printed only its best, only those are kept. `HINTS` are those of eviction, of the two
loads and the store.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from tabulate import tabulate

TRIALS = Path(__file__).resolve().parents[1] / "results" / "trials.json"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", nargs="*", help="a part of a work's name; default: all of them")
    parser.add_argument("--most", type=int, default=3, metavar="N", help="configurations of each (default: 3)")
    parser.add_argument("--file", type=Path, default=TRIALS)
    args = parser.parse_args()
    made = json.loads(args.file.read_text(encoding="utf-8"))
    rows = [
        (name, f"{row['ms']:.4f}", f"{tried['flops'] / row['ms'] / 1e9:.0f}" if tried["flops"] else "", _words(row))
        for name, tried in made["trials"].items()
        if not args.work or any(part in name for part in args.work)
        for row in tried["rows"][: args.most]
    ]
    if not rows:
        print(f"trials: none of {', '.join(args.work)}; there are {', '.join(made['trials'])}", file=sys.stderr)
        return 2
    print(f"{made['device']}, torch {made['torch']}, Triton {made['triton']}")
    print(tabulate(rows, headers=("work", "ms", "TFLOP/s", "blocks")))
    return 0


def _words(row: dict[str, dict[str, object]]) -> str:
    return " ".join(f"{name}={value}" for name, value in row["blocks"].items())


if __name__ == "__main__":
    sys.exit(main())
