"""Search the declared space of block sizes of kernels for targets.

Where the target's device is here, configurations are ranked by time. Elsewhere every one is compiled, those that do not
fit or spill are dropped, and the rest is ranked by a model of occupancy: that is not a measurement, and the entry says
so. The best must fit every sample, and be right on the interpreter. The lines printed last belong in the adapter's
block table, one entry where all targets of a family or of the backend come to the same; --write puts them there.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

from portability import tuning
from portability.backend import DEFAULT, Backend, Resolved, look_up_blocks, read_blocks
from portability.catalogue import Selection, check
from portability.harness import Harness
from portability.kernel import Blocks
from portability.matrix import Matrix, read_matrix
from portability.model import CaseInfo, Cell, Evidence, Target
from portability.plugin import find_matrix
from portability.pool import temporary_folder
from portability.porting.search import entry_of, interpreted, sample_for, search


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.add_argument("kernel", nargs="+", help="names or patterns; of a pattern, those that declare a space")
    parser.add_argument("--target", action="append", required=True, metavar="T", help="repeatable")
    parser.add_argument("--missing", action="store_true", help="only where the block table has no entry yet")
    parser.add_argument(
        "--dtype", metavar="D", help="make the entry for one dtype (default: one for all, searched with the first)"
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
            asked = Selection(tuple(args.kernel), (), tuple(args.target), (args.dtype,) if args.dtype else ())
            check(asked, harness.catalogue, harness.adapters)
            good = [_of_case(harness, case, args) for case in _cases(harness, args)]
        finally:
            harness.close()
    return 0 if all(good) else 1


def _cases(harness: Harness, args: argparse.Namespace) -> list[CaseInfo]:
    """Return the cases that are named or match, of which a named one must have a space and the dtype."""
    named = [c for c in harness.catalogue.cases if c.name in args.kernel]
    for case in named:
        if not case.space:
            raise ValueError(f"{case.name} declares no space to search (KernelCase.space)")
        if args.dtype and args.dtype not in case.dtypes:
            raise ValueError(f"--dtype {args.dtype}: {case.name} takes {', '.join(case.dtypes)}")
    found = [c for c in harness.catalogue.cases if any(fnmatchcase(c.name, pattern) for pattern in args.kernel)]
    return [c for c in found if c.space and (not args.dtype or args.dtype in c.dtypes)]


def _of_case(harness: Harness, case: CaseInfo, args: argparse.Namespace) -> bool:
    """Tune one kernel for each target, and print or write its entries; whether something was found for all of them."""
    targets = [t for t in harness.catalogue.targets if t.id in args.target]
    if args.missing:
        targets = [t for t in targets if _looked_up(harness, case, t, args).source == DEFAULT]
    found = {t.id: _tune(harness, case, t, args) for t in targets}
    suffix = f"/{args.dtype}" if args.dtype else ""
    for backend in {t.backend: harness.adapters[t.backend] for t in targets}.values():
        of_backend = {t: f for t, f in found.items() if f is not None and t in backend.targets}
        apart = {t for t in backend.targets if t not in of_backend and _own_entry(backend, case, t)}
        kept = {t.id: _of_space(case, _looked_up(harness, case, t, args).blocks) for t in harness.catalogue.targets}
        folded = tuning.fold(of_backend, backend.families, set(backend.targets) - apart, kept)
        for place, (blocks, how) in folded.items():
            text = entry_of(case, place + suffix, blocks, how)
            print(f"\n{text}")
            if args.write:
                tuning.write_entry(backend.block_table(), case.name, place + suffix, text)
                print(f"written to {backend.block_table().name}")
    return None not in found.values()


def _looked_up(harness: Harness, case: CaseInfo, target: Target, args: argparse.Namespace) -> Resolved:
    """Return the blocks that the target has now, for the dtype that is searched with."""
    dtype, adapter = args.dtype or case.dtypes[0], harness.adapters[target.backend]
    return look_up_blocks(adapter, case.name, target.id, dtype, Blocks(dict(case.blocks)), harness.matrix.blocks)


def _own_entry(backend: Backend, case: CaseInfo, target: str) -> bool:
    """Whether the table's entries for `target` or its families name all that is searched: "*" changes nothing there."""
    table = read_blocks(backend.block_table()).get(case.name, {})
    named = {n for place in (target, *backend.families_of(target)) for n in table.get(place, {})}
    return set(case.space) <= named


def _tune(harness: Harness, case: CaseInfo, target: Target, args: argparse.Namespace) -> tuning.Found | None:
    """Return the best blocks, of what the space names, and how they were found."""
    from tabulate import tabulate

    if target.evidence is Evidence.NONE:
        print(f"{target.id}: {target.why}; {target.remedy}")
        return None
    dtype = args.dtype or case.dtypes[0]
    base = _looked_up(harness, case, target, args).blocks
    cell = _cell(harness, case, dtype, target, base)
    made = search(harness, cell, target, [dict(base), *tuning.candidates(case.space, base, args.most)])
    ranked = made.ranked
    how = f"measured on {target.device}" if made.timed else "not measured: ranked by a model of occupancy"
    counts = f"{len(made.trials)} configurations, {made.failed} do not work, {made.spilling} spill"
    print(f"{cell.id}: {counts}; {how}")
    print(
        tabulate(
            [_row(t, case) for t in ranked[: args.top]],
            headers=("blocks", "ms", "registers", "shared", "occupancy", "matrix"),
        ),
        flush=True,
    )
    best = next((t for t in ranked if _works(harness, case, cell, target, t, not args.dtype)), None)
    if best is None:
        print("none of them works for every sample and is right on the interpreter")
        return None
    return _of_space(case, best.blocks), made.found


def _of_space(case: CaseInfo, blocks: Mapping[str, int]) -> dict[str, int]:
    return {n: v for n, v in blocks.items() if n in case.space}


def _cell(harness: Harness, case: CaseInfo, dtype: str, target: Target, base: Mapping[str, int]) -> Cell:
    """Return the cell to search with: a timed one on a device, elsewhere the quick one.

    Of a product, it is the one whose binary needs the most: operands in multiples of 16 are fetched ahead into shared
    memory, ragged ones are not.
    """
    cell = Cell(case.name, dtype, sample_for(case, dtype, target).name, target.id, target.environment)
    if target.evidence is Evidence.RAN or not (quick := _tried(harness, cell, target, base)).matrix:
        return cell
    trials = {c: _tried(harness, c, target, base) for c in _small(case, cell) if c != cell} | {cell: quick}
    return max(trials, key=lambda c: (trials[c].shared, trials[c].registers))


def _tried(harness: Harness, cell: Cell, target: Target, blocks: Mapping[str, int]) -> tuning.Trial:
    return tuning.Trial(blocks, harness.run_with(cell, target, blocks, "tune"))


def _small(case: CaseInfo, cell: Cell) -> list[Cell]:
    """Return the cells of all samples that are not for timing."""
    usable = [s for s in case.samples if not s.bench and (not s.dtypes or cell.dtype in s.dtypes)]
    return [replace(cell, sample=s.name) for s in usable]


def _works(harness: Harness, case: CaseInfo, cell: Cell, target: Target, trial: tuning.Trial, every: bool) -> bool:
    """Whether the blocks fit every sample, and are right on the interpreter where there is one.

    `every`: the entry is for all dtypes, so that the blocks must fit those too that the target is said to take.
    """
    cells = _small(case, cell)
    if every:
        claims = harness.adapters[target.backend].claims
        cells += [replace(cell, dtype=d) for d in case.dtypes if d != cell.dtype and claims(target.id, d)]
    seen = interpreted(harness, cell, trial.blocks)
    first = [] if seen is None else [tuning.Trial(trial.blocks, seen)]
    for tried in itertools.chain(first, (_tried(harness, c, target, trial.blocks) for c in cells)):
        if not tried.fits:
            why = f"spills {tried.spills} bytes" if tried.spills else f"is {tried.observation.outcome}"
            print(f"not taken, as {tried.observation.cell.id} {why}: {_named(trial, case)}")
            return False
    return True


def _named(trial: tuning.Trial, case: CaseInfo) -> str:
    return ", ".join(f"{k}={trial.blocks[k]}" for k in trial.blocks if k in case.space)


def _row(trial: tuning.Trial, case: CaseInfo) -> tuple[str, str, str, str, str, str]:
    return (
        _named(trial, case),
        f"{trial.median:.4g}" if trial.median is not None else "-",
        str(trial.registers),
        str(trial.shared),
        f"{trial.occupancy:.0%}",
        trial.matrix,
    )
