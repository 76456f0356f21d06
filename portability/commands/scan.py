"""Record what a package launches, and compile it for every target.

    portability scan liger_kernel --driver driver.py
    portability scan fla -- tests/ops -k "not backward"

PACKAGE is the name of an importable package, or a project's folder. What launches its kernels is a driver file, which
calls its operators, or its own test suite: the pytest arguments after `--`, else the tests that lie in or beside it.

Without a device, launches go into nothing, and a program may choose other blocks where it finds another vendor's: so
it is recorded once for each compiler among the targets.

Exit code 0 where everything compiles everywhere, 1 where something does not, 2 where nothing could be recorded.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from portability.commands.check import COMPILE_LIMIT, add_recorded_arguments, check_recorded
from portability.commands.record import record
from portability.tomltable import nearest

TESTS = ("tests", "test")
PREFERRED = ("cuda:90", "hip:gfx942")  # of the targets of one compiler, what a program is told of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.usage = "portability scan PACKAGE [--driver FILE] [--target T]... [-- PYTEST ARGUMENTS]"
    parser.add_argument("package", metavar="PACKAGE")
    parser.add_argument("--driver", type=Path, metavar="FILE", help="a Python file that calls the package's operators")
    parser.add_argument(
        "--target", action="append", default=[], metavar="T", help="only this target (repeatable; a pattern may hold *)"
    )
    parser.add_argument(
        "--record-target", action="append", default=[], metavar="T",
        help="record for this target (repeatable; default: the device that is here, else one for each compiler)",
    )  # fmt: skip
    parser.add_argument("-o", "--output", type=Path, metavar="FOLDER", help="where the recordings are written")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument(
        "--compile-limit", type=float, default=COMPILE_LIMIT, metavar="S",
        help=f"seconds a launch may compile for one target (default: {COMPILE_LIMIT:g})",
    )  # fmt: skip
    parser.add_argument(
        "--matrix", type=Path, metavar="FILE", help="matrix.toml with adapters, environments and rules of its own"
    )
    add_recorded_arguments(parser)


def main(args: argparse.Namespace) -> int:
    """Record, check, print; return the exit code."""
    from portability.record.session import known_target

    name = Path(args.package).resolve().name if _is_folder(args.package) else args.package
    program = program_of(args.package, args.driver, args.rest)
    if args.matrix is None:  # else it may have adapters of its own, which are asked when it is checked
        known_patterns(args.target)
    targets = args.record_target or targets_to_record(args.target)
    for target in targets:
        known_target(target)
    folder = (args.output or Path(".portability") / f"scan-{name}").absolute()
    files = []
    for target in targets:
        file = folder / f"{name}-{(target or 'device').replace(':', '-')}.json"
        code = record(program, file, target, quiet=args.json)
        if code:
            said = f"the program ended with exit code {code}; what it launched until then is checked"
            print(f"portability scan: {said}", file=sys.stderr)
        files.append(file)
    return check_recorded(args, files)


def program_of(package: str, driver: Path | None, rest: Sequence[str]) -> list[str]:
    """Return what is recorded. Raises `ValueError` where there is neither a driver nor a test."""
    if driver is not None:
        return [str(driver), *rest]
    if rest:
        return ["pytest", *rest]
    where = Path(package) if _is_folder(package) else _folder_of(package)
    for folder in (where, where.parent):
        for tests in TESTS:
            if (folder / tests).is_dir():
                return ["pytest", str(folder / tests)]
    raise ValueError(
        f"{package}: no {' or '.join(TESTS)} in or beside {where.name}; "
        "--driver FILE names a file that calls its operators, and -- TESTS its test suite"
    )


def known_patterns(patterns: Sequence[str]) -> None:
    """Raise `ValueError`, with the choices, for a pattern that no adapter has a target for."""
    from portability.backend import discover

    known = [t for a in discover().values() for t in a.targets]
    for pattern in patterns:
        if not any(fnmatchcase(t, pattern) for t in known):
            raise ValueError(f"--target: {pattern!r} is nothing here; {nearest(pattern, known)}")


def targets_to_record(patterns: Sequence[str]) -> list[str]:
    """Return what to tell the program of: nothing where a device is here, else a target of each compiler."""
    from portability.backend import discover
    from portability.device import DeviceBackend
    from portability.record.session import device_target

    if device_target():
        return [""]
    found: list[str] = []
    for adapter in discover().values():
        wanted = [t for t in adapter.targets if not patterns or any(fnmatchcase(t, p) for p in patterns)]
        if isinstance(adapter, DeviceBackend) and wanted:
            found.append(next((t for t in PREFERRED if t in wanted), wanted[0]))
    return found or [PREFERRED[0]]


def _is_folder(package: str) -> bool:
    return "/" in package or package in (".", "..")


def _folder_of(package: str) -> Path:
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError):
        spec = None
    if spec is None or not (spec.submodule_search_locations or spec.origin):
        raise ValueError(f"{package}: no such package can be imported here; a project's folder is written with a /")
    places = list(spec.submodule_search_locations or ())
    return Path(places[0]) if places else Path(str(spec.origin)).parent
