"""What the binaries of kernels need on each target, side by side. It compiles, so that no device is needed.

    python benchmarks/resources.py convolution_range convolution_static_range --sample 1x64x64-taps8

Registers are those of a thread, spills are bytes, occupancy is the share of its warps that a compute unit can hold,
matrix is the matrix instruction of a product, or "scalar" without one.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from tabulate import tabulate

from portability.catalogue import Selection, blocks_of, check
from portability.harness import Harness
from portability.matrix import Matrix, read_matrix
from portability.model import CaseInfo, Cell, Evidence, Observation, Target
from portability.plugin import find_matrix
from portability.pool import temporary_folder

WORDS = ("registers", "spills", "occupancy", "matrix")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kernel", nargs="+")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--sample", help="default: the quick one of each kernel")
    parser.add_argument("--format", default="github", help="of tabulate (default github)")
    args = parser.parse_args()
    path = find_matrix(Path.cwd())
    with temporary_folder() as folder:
        harness = Harness(read_matrix(path) if path else Matrix(), folder, Path.cwd(), {"timing": False})
        try:
            asked = Selection(kernels=tuple(args.kernel), dtypes=(args.dtype,))
            check(asked, harness.catalogue, harness.adapters)
            cases = [harness.catalogue.case(k) for k in args.kernel]
            targets = [t for t in harness.catalogue.targets if t.evidence is Evidence.COMPILED]
            found = [[_words(_compiled(harness, c, t, args.dtype, args.sample)) for c in cases] for t in targets]
        finally:
            harness.close()
    shown = [what for what in WORDS if any(what in words for row in found for words in row)]
    heads = ["target", *(f"{kernel}: {what}" for kernel in args.kernel for what in shown)]
    rows = [[t.id, *(words.get(w, "-") for words in row for w in shown)] for t, row in zip(targets, found, strict=True)]
    print(tabulate(rows, headers=heads, tablefmt=args.format))
    return 0


def _compiled(harness: Harness, case: CaseInfo, target: Target, dtype: str, sample: str | None) -> Observation:
    sample = sample or next(s.name for s in case.samples if s.quick)
    cell = Cell(case.name, dtype, sample, target.id, target.environment)
    blocks, source = blocks_of(cell, case, harness.matrix, harness.adapters, target)
    return harness.run_with(cell, target, blocks, source)


def _words(observation: Observation) -> dict[str, str]:
    if observation.outcome != "pass":
        return {"registers": str(observation.outcome)}
    worst = max(observation.resources, key=lambda r: r.registers or 0)
    words = {"registers": str(worst.registers), "spills": str(worst.spills or 0), "matrix": worst.matrix}
    words["occupancy"] = "" if worst.occupancy is None else f"{worst.occupancy:.0%}"
    return {what: word for what, word in words.items() if word}


if __name__ == "__main__":
    raise SystemExit(main())
