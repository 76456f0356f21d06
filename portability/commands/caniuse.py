"""Look up a name of the language: on which target it works, by which evidence, since when, and what to use instead.

    portability caniuse dot_scaled
    portability caniuse atomic_add bfloat16
    portability caniuse float8e4nv --target cuda:89
    portability caniuse --kernel flash_attention
    portability caniuse --changes 3.8 3.9

It reads the baselines that are published with the package, and runs nothing.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from portability.baselines import files
from portability.baselines.answers import UnknownNameError, look_up
from portability.baselines.wording import answer_text
from portability.model import to_json


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.add_argument("name", nargs="*", metavar="NAME", help="a name, and a dtype where one is of interest")
    parser.add_argument("--target", action="append", default=[], metavar="T", help="only this target (repeatable)")
    parser.add_argument("--json", action="store_true", help="everything, for programs")
    help_ = "what a kernel uses, and where that works: a bundled one, FILE or FILE:FUNCTION"
    parser.add_argument("--kernel", metavar="KERNEL", help=help_)
    help_ = "what was added, removed or changed from one Triton to another"
    parser.add_argument("--changes", nargs=2, metavar=("OLD", "NEW"), help=help_)
    parser.add_argument("--coverage", action="store_true", help="the percentage that works, by target and group")


def main(args: argparse.Namespace) -> int:
    """Look up, and print; 2 for a name that does not exist."""
    if not files.versions():
        raise ValueError("there is no baseline yet: portability update")
    if args.kernel:
        from portability.baselines.crossing import crossing, crossing_text

        found = crossing(args.kernel, args.target, Path.cwd())
        print(json.dumps(to_json(found), indent=1) if args.json else crossing_text(found))
    elif args.changes:
        from portability.baselines.coverage import changes_data, changes_text

        print(json.dumps(changes_data(*args.changes), indent=1) if args.json else changes_text(*args.changes), end="")
    elif args.coverage:
        from portability.baselines.coverage import coverage, coverage_text

        print(json.dumps(to_json(coverage(args.target)), indent=1) if args.json else coverage_text(args.target), end="")
    else:
        return _name(args)
    return 0


def _name(args: argparse.Namespace) -> int:
    name, *dtypes = args.name or [""]
    if not name or len(dtypes) > 1:
        raise ValueError("a name is needed, and one dtype at most: portability caniuse atomic_add bfloat16")
    try:
        answer = look_up(name, dtypes[0] if dtypes else "", args.target)
    except UnknownNameError as error:
        print(f"portability caniuse: {error}", file=sys.stderr)
        return 2
    print(json.dumps(to_json(answer), indent=1) + "\n" if args.json else answer_text(answer), end="")
    return 0
