"""Search the declared space of block sizes of a kernel for a target.

Where the target's device is here, configurations are ranked by time. Elsewhere every one is compiled, those that do not
fit or spill are dropped, and the rest is ranked by a model of occupancy: that is not a measurement, and the entry says
so. The best is checked on the interpreter. The lines printed last belong in the adapter's block table; --write puts
them there.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from portability import tuning
from portability.backend import look_up_blocks
from portability.catalogue import Selection, check
from portability.harness import Harness
from portability.kernel import Blocks
from portability.matrix import Matrix, read_matrix
from portability.model import CaseInfo, Cell, Evidence, Outcome, Target
from portability.plugin import find_matrix
from portability.pool import temporary_folder
from portability.porting.search import entry_of, interpreted, sample_for, search


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.add_argument("kernel")
    parser.add_argument("--target", action="append", required=True, metavar="T", help="repeatable")
    parser.add_argument(
        "--dtype", metavar="D", help="make the entry for one dtype (default: the case's first, for all)"
    )
    parser.add_argument("--most", type=int, default=48, metavar="N", help="at most N configurations (default 48)")
    parser.add_argument("--top", type=int, default=8, metavar="N", help="print the best N")
    parser.add_argument("--write", action="store_true", help="put the best into the adapter's block table")


def main(args: argparse.Namespace) -> int:
    """Tune for each target. Raises `ValueError` for a kernel without a space, or names that are nothing."""
    path = find_matrix(Path.cwd())
    with temporary_folder() as folder:
        harness = Harness(read_matrix(path) if path else Matrix(), folder, Path.cwd(), {"timing": True})
        try:
            asked = Selection((args.kernel,), (), tuple(args.target), (args.dtype,) if args.dtype else ())
            check(asked, harness.catalogue, harness.adapters)
            case = harness.catalogue.case(args.kernel)
            if not case.space:
                raise ValueError(f"{args.kernel} declares no space to search (KernelCase.space)")
            found = [_tune(harness, case, t, args) for t in harness.catalogue.targets if t.id in args.target]
        finally:
            harness.close()
    return 0 if all(found) else 1


def _tune(harness: Harness, case: CaseInfo, target: Target, args: argparse.Namespace) -> bool:
    from tabulate import tabulate

    if target.evidence is Evidence.NONE:
        print(f"{target.id}: {target.why}; {target.remedy}")
        return False
    backend, dtype = harness.adapters[target.backend], args.dtype or case.dtypes[0]
    base = look_up_blocks(backend, case.name, target.id, dtype, Blocks(dict(case.blocks)), harness.matrix.blocks).blocks
    cell = Cell(case.name, dtype, sample_for(case, dtype, target).name, target.id, target.environment)
    made = search(harness, cell, target, [dict(base), *tuning.candidates(case.space, base, args.most)])
    ranked = made.ranked
    how = f"measured on {target.device}" if made.timed else "not measured: ranked by a model of occupancy"
    counts = f"{len(made.trials)} configurations, {made.failed} do not work, {made.spilling} spill"
    print(f"{cell.id}: {counts}; {how}")
    print(
        tabulate(
            [_row(t, case) for t in ranked[: args.top]],
            headers=("blocks", "ms", "registers", "shared", "occupancy", "matrix"),
        )
    )
    best = next((t for t in ranked if _interprets(harness, cell, t)), None)
    if best is None:
        print("none of them works and is right on the interpreter")
        return False
    selector = f"{target.id}/{args.dtype}" if args.dtype else target.id
    text = entry_of(case, selector, best.blocks, made.found)
    print(f"\n{text}")
    if args.write:
        tuning.write_entry(backend.block_table(), case.name, selector, text)
        print(f"written to {backend.block_table().name}")
    return True


def _interprets(harness: Harness, cell: Cell, trial: tuning.Trial) -> bool:
    """Whether the same blocks are right on the interpreter, where there is one."""
    observation = interpreted(harness, cell, trial.blocks)
    return observation is None or observation.outcome is Outcome.PASS


def _row(trial: tuning.Trial, case: CaseInfo) -> tuple[str, str, str, str, str, str]:
    resources = trial.observation.resources
    named = ", ".join(f"{k}={trial.blocks[k]}" for k in trial.blocks if k in case.space)
    return (
        named,
        f"{trial.median:.4g}" if trial.median is not None else "-",
        str(max((r.registers or 0 for r in resources), default=0)),
        str(max((r.shared or 0 for r in resources), default=0)),
        f"{trial.occupancy:.0%}",
        trial.matrix,
    )
