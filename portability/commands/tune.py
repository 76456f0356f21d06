"""Search the declared space of block sizes of kernels for targets.

Where the target's device is here, configurations are ranked by time. Elsewhere every one is compiled, those that do not
fit or spill are dropped, and the rest is ranked by a model of occupancy: that is not a measurement, and the entry says
so. The best must fit every sample, and be right on the interpreter. It is searched with a 16-bit dtype where the kernel
takes any, and made for all; one above 16 bits gets an entry of its own where that one does not fit it. The lines
printed last belong in the adapter's block table, one entry where all targets of a family or of the backend come to the
same; --write puts them there.
"""

from __future__ import annotations

import argparse
import itertools
import re
from collections.abc import Collection, Mapping, Sequence
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
        "--dtype",
        metavar="D",
        help="make the entry for one dtype (default: one for all, and one for each above 16 bits that it does not fit)",
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
    dtypes, wide = ((args.dtype,), ()) if args.dtype else _by_width(case.dtypes)
    before = {t.id: _looked_up(harness, case, t, dtypes[0]) for t in harness.catalogue.targets}
    if args.missing:
        targets = [t for t in targets if before[t.id].source == DEFAULT]
    base = {t: b.blocks for t, b in before.items()}
    found = {t.id: _tune(harness, case, t, args, dtypes, base[t.id]) for t in targets}
    made = _entries(harness, case, args, found, f"/{args.dtype}" if args.dtype else "", base)
    good = [*found.values()]
    for dtype in wide:
        now = {t.id: _looked_up(harness, case, t, dtype).blocks for t in harness.catalogue.targets}
        base = now | {t: now[t] | f[0] for t, f in found.items() if f is not None}
        own = {
            t.id: _tune(harness, case, t, args, (dtype,), base[t.id])
            for t in targets
            if _claims(harness, t, dtype) and not _fits(harness, case, t, dtype, base[t.id])
        }
        good += own.values()
        own = {t: f or (_of_space(case, now[t]), "as before a search in which nothing fitted") for t, f in own.items()}
        _entries(harness, case, args, own, f"/{dtype}", base, made)
    return None not in good


def _by_width(dtypes: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the dtypes that a general entry is for, the one to search with first, and those wider than 16 bits.

    A kernel's tiles are made for the narrow ones, and what the wide ones leave of registers would make them small: a
    wide one gets an entry of its own where the general one does not fit it.
    """
    bits = {d: int(next(iter(re.findall(r"\d+", d)), "8")) for d in dtypes}  # bool has no number
    narrow = sorted((d for d in dtypes if bits[d] <= 16), key=lambda d: -bits[d])
    return (tuple(narrow), tuple(d for d in dtypes if bits[d] > 16)) if narrow else (tuple(dtypes), ())


def _entries(
    harness: Harness, case: CaseInfo, args: argparse.Namespace, found: Mapping[str, tuning.Found | None], suffix: str,
    base: Mapping[str, Blocks], before: Collection[str] = (),
) -> list[str]:  # fmt: skip
    """Print or write what was found by target, in as few entries as say the same; return their places.

    `before`: the places of entries that were found just before, and may not be in the table.
    """
    made: list[str] = []
    of_target = {t.id: harness.adapters[t.backend] for t in harness.catalogue.targets}
    for backend in {of_target[t].name: of_target[t] for t in found}.values():
        of_backend = {t: f for t, f in found.items() if f is not None and t in backend.targets}
        apart = {t for t in backend.targets if t not in of_backend and _own_entry(backend, case, t)}
        kept = {t: _of_space(case, blocks) for t, blocks in base.items()}
        within = {t: _place_of(backend, case, t, suffix, before) for t in of_backend}
        folded = tuning.fold(of_backend, backend.families, set(backend.targets) - apart, kept, within)
        made += folded
        for place, (blocks, how) in folded.items():
            text = entry_of(case, place + suffix, blocks, how)
            print(f"\n{text}")
            if args.write:
                tuning.write_entry(backend.block_table(), case.name, place + suffix, text)
                print(f"written to {backend.block_table().name}")
    return made


def _place_of(backend: Backend, case: CaseInfo, target: str, suffix: str, before: Collection[str]) -> str:
    """Return the place of the most specific entry that names something that is searched: of the table, or `before`."""
    table = read_blocks(backend.block_table()).get(case.name, {})
    named = {place for place, values in table.items() if set(case.space) & set(values)} | set(before)
    places = (target, *backend.families_of(target))
    return next((p for p in places if p in named or p + suffix in named), "*")


def _looked_up(harness: Harness, case: CaseInfo, target: Target, dtype: str) -> Resolved:
    """Return the blocks that the target has now, for `dtype`."""
    adapter = harness.adapters[target.backend]
    return look_up_blocks(adapter, case.name, target.id, dtype, Blocks(dict(case.blocks)), harness.matrix.blocks)


def _own_entry(backend: Backend, case: CaseInfo, target: str) -> bool:
    """Whether the table's entries for `target` or its families name all that is searched: "*" changes nothing there."""
    table = read_blocks(backend.block_table()).get(case.name, {})
    named = {n for place in (target, *backend.families_of(target)) for n in table.get(place, {})}
    return set(case.space) <= named


def _tune(
    harness: Harness, case: CaseInfo, target: Target, args: argparse.Namespace, dtypes: Sequence[str], base: Blocks
) -> tuning.Found | None:
    """Return the best blocks for `dtypes`, of what the space names, and how they were found: by the first of them."""
    from tabulate import tabulate

    if target.evidence is Evidence.NONE:
        print(f"{target.id}: {target.why}; {target.remedy}")
        return None
    claimed = [d for d in dtypes if _claims(harness, target, d)] or dtypes
    cell = _cell(harness, case, claimed[0], target, base)
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
    best = next((t for t in ranked if _works(harness, case, cell, target, t, claimed)), None)
    if best is None:
        print("none of them works for every sample and is right on the interpreter")
        return None
    return _of_space(case, best.blocks), made.found


def _claims(harness: Harness, target: Target, dtype: str) -> bool:
    return harness.adapters[target.backend].claims(target.id, dtype)


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


def _works(
    harness: Harness, case: CaseInfo, cell: Cell, target: Target, trial: tuning.Trial, dtypes: Sequence[str]
) -> bool:
    """Whether the blocks are right on the interpreter, where there is one, and fit every sample, and the cell's sample
    in each of `dtypes`.
    """
    seen = interpreted(harness, cell, trial.blocks)
    first = [] if seen is None else [tuning.Trial(trial.blocks, seen)]
    cells = [*_small(case, cell), *(replace(cell, dtype=d) for d in dtypes if d != cell.dtype)]
    for tried in itertools.chain(first, (_tried(harness, c, target, trial.blocks) for c in cells)):
        if not tried.fits:
            why = f"spills {tried.spills} bytes" if tried.spills else f"is {tried.observation.outcome}"
            print(f"not taken, as {tried.observation.cell.id} {why}: {_named(trial, case)}")
            return False
    return True


def _fits(harness: Harness, case: CaseInfo, target: Target, dtype: str, blocks: Blocks) -> bool:
    """Whether `blocks` fit every sample in `dtype`."""
    cell = Cell(case.name, dtype, sample_for(case, dtype, target).name, target.id, target.environment)
    return all(_tried(harness, c, target, blocks).fits for c in _small(case, cell))


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
