"""Say of one cell what was observed, which rule of matrix.toml decided, and why."""

from __future__ import annotations

import argparse
from pathlib import Path

from portability.matrix import Matrix, explain
from portability.model import Observation, Tuning
from portability.results import read_runs
from portability.tomltable import nearest


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.add_argument("cell", help="its id, as pytest shows it: matmul-float16-257x129x65-hip:gfx942")
    parser.add_argument(
        "file", nargs="*", type=Path, default=[], help="results files (default: the newest in .portability/)"
    )


def main(args: argparse.Namespace) -> int:
    """Explain the cell in each run that holds it."""
    files = args.file or newest(Path(".portability"))
    seen: list[str] = []
    said = 0
    for run in (run for file in files for run in read_runs(file)):
        matrix = Matrix(expectations=run.header.expectations)
        for observation, verdict in zip(run.observations, run.verdicts(), strict=True):
            seen.append(observation.cell.id)
            if observation.cell.id == args.cell:
                print(explain(matrix, observation, verdict))
                print("\n".join(_more(observation)))
                said += 1
    if not said:
        raise ValueError(
            f"no cell {args.cell!r} in {', '.join(map(str, files))}; {nearest(args.cell, dict.fromkeys(seen))}"
        )
    return 0


def newest(folder: Path) -> list[Path]:
    """Return the newest results file in `folder`."""
    files = sorted(folder.glob("*.jsonl"), key=lambda p: p.stat().st_mtime)
    if not files:
        raise ValueError(f"no results file in {folder}/; name one, or run the matrix first")
    return files[-1:]


def tuning(t: Tuning) -> str:
    """Return what tuning a kernel for one key took."""
    chosen = f"; chosen: {t.chosen}" if t.chosen else "; none timed, so that the first is taken"
    return f"{t.kernel} for ({t.key}): {t.configurations} configurations in {t.seconds:.2f} s{chosen}"


def _more(o: Observation) -> list[str]:
    lines = [f"  line       {o.line}"] if o.line else []
    if o.blocks:
        lines.append(f"  blocks     {', '.join(f'{k}={v}' for k, v in o.blocks.items())} ({o.blocks_from})")
    if o.accuracy:
        a = o.accuracy
        lines.append(f"  accuracy   error {a.error:.3g}, allowed {a.tolerance:.3g} ({a.ratio:.2f} of it)")
    for r in o.resources:
        parts = [
            f"{r.registers} registers" if r.registers is not None else "",
            f"{r.spills} B spilled" if r.spills else "",
            f"{r.shared} of {r.shared_limit} B shared" if r.shared is not None else "",
            f"occupancy {r.occupancy:.0%} ({r.occupancy_limit})" if r.occupancy is not None else "",
            r.matrix,
        ]
        lines.append(f"  resources  {r.kernel}: {', '.join(filter(None, parts))}")
    lines += [f"  tuning     {t}" for t in map(tuning, o.tunings)]
    lines += [f"  warning    {w.code}: {w.message}{f' ({w.line})' if w.line else ''}" for w in o.warnings]
    flags = f"--in-process --target {o.cell.target}"
    lines.append(f"  again      pytest tests/test_matrix.py --full {flags} -k '{o.cell.id}'")
    return lines
