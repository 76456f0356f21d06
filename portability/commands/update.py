"""Record what the API probes come to as the baseline that later runs are compared with.

Without a FILE every probe is run first, in the environments and on the targets that are named; with FILEs what they
hold is recorded, which is how the observations of another machine, run on a device that is not here, come in. A
baseline keeps what a run did not reach: targets, and evidence. What changed is listed, cell by cell.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

from portability.baselines import files
from portability.baselines.records import merged
from portability.model import CaseInfo, Cell, Evidence, Observation
from portability.plugin import new_results
from portability.results import Run, read_runs

MOST = 40  # changed cells that are listed


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE", help="results of runs to record, none: run now")
    help_ = "run in this environment: 'default', or one of `portability env list` (repeatable)"
    parser.add_argument("--environment", action="append", default=[], metavar="E", help=help_)
    parser.add_argument("--target", action="append", default=[], metavar="T", help="only this target (repeatable)")
    parser.add_argument("--check", action="store_true", help="write nothing; exit code 1 where a baseline would change")
    parser.add_argument("-n", default="auto", metavar="N", help="workers of a run (default: auto; 0: none)")


def main(args: argparse.Namespace) -> int:
    """Run or read, write the baselines, and say what changed in them."""
    probes = _probes()
    runs = [run for file in args.files or [_run(args, probes)] for run in read_runs(file)]
    changed = list(record(runs, probes, args.target, write=not args.check))
    for line in changed[:MOST]:
        print(line)
    if len(changed) > MOST:
        print(f"… and {len(changed) - MOST} more")
    if not changed:
        print("nothing changed")
    return 1 if args.check and changed else 0


def record(
    runs: Sequence[Run],
    probes: Sequence[CaseInfo],
    targets: Sequence[str] = (),
    write: bool = True,
    folder: Path = files.FOLDER,
) -> Iterator[str]:
    """Put what the runs hold of `probes`, all that there are, into the baselines; yield a line for each changed cell.

    Of several runs the last one's observation of a cell counts. Raises `ValueError` where no run holds a probe of such
    a target.
    """
    cases = {c.name: c for c in probes}
    grouped: dict[tuple[str, str], dict[tuple[Cell, Evidence], Observation]] = {}
    for o in (o for run in runs for o in run.observations if o.cell.kernel in cases):
        minor = files.minor_of(o.versions.get("triton", ""))
        if minor and (not targets or o.cell.target in targets):
            grouped.setdefault((minor, o.cell.target), {})[o.cell, o.evidence] = o
    if not grouped:
        raise ValueError(f"no probe was run{' on ' + ', '.join(targets) if targets else ''}; nothing to record")
    for (minor, target), observations in sorted(grouped.items()):
        old = files.read(minor, target, folder)
        new = merged(old, observations.values(), cases)
        yield from (f"{minor} {target} {line}" for line in _changes(old, new))
        if write:
            version = next(iter(observations.values())).versions["triton"]
            files.write(minor, target, version, new, folder)
    if write:
        files.write_probes(probes, folder)


def _probes() -> list[CaseInfo]:
    """Return every probe. Raises `ValueError` where a module of them cannot be imported: its records would be lost."""
    from portability.kernel import discover

    found = discover()
    for module, error in found.errors.items():
        raise ValueError(f"{module}: cannot be imported: {error}")
    return [case.info() for case in found.cases.values() if case.names]


def _changes(old: files.Records, new: files.Records) -> Iterator[str]:
    for key in sorted({*old, *new}):
        before, after = (_said(records.get(key)) for records in (old, new))
        if before != after:
            probe, dtype, evidence = key
            yield f"{probe} {dtype} {evidence}: {before} -> {after}"


def _said(record: files.Record | None) -> str:
    if record is None:
        return "not recorded"
    return f"{record.outcome} ({record.how})" if record.how else str(record.outcome)


def _run(args: argparse.Namespace, probes: Sequence[CaseInfo]) -> Path:
    """Run every probe, and return the file of its results; its table is printed too."""
    from portability.commands import run

    results = new_results(Path.cwd())  # its own: two updates may run at once
    words = ["--full", "--no-timing", "-n", args.n, "--results", str(results)]
    words += [
        word for name in ("environment", "target") for value in getattr(args, name) for word in (f"--{name}", value)
    ]
    parser = argparse.ArgumentParser()
    run.add_arguments(parser)
    run.main(parser.parse_args([*sorted(p.name for p in probes), *words], argparse.Namespace(rest=[])))
    if not results.exists():
        raise ValueError("nothing was run")
    return results
