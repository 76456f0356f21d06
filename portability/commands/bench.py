"""Time a kernel over sizes by powers of two, against torch on the same buffers, and say what bounds it.

Needs a device. Writes a results file like any run's (JSON Lines), and with -o a page with curves under the measured
ceilings. Each size is compared with its reference first.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from portability import provenance
from portability.catalogue import Catalogue, blocks_of, check
from portability.catalogue import Selection as Asked
from portability.harness import Harness
from portability.kernel import SWEPT
from portability.matrix import Matrix, read_matrix
from portability.model import CaseInfo, Cell, Evidence, Observation, Target, Timing, Tuning
from portability.plugin import find_matrix, new_results
from portability.pool import temporary_folder
from portability.results import Selection
from portability.times import duration
from portability.writer import Writer

LATENCY = 1.5  # a time at most this many times that of the smallest size is the launch's own


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.add_argument("kernel", nargs="+", help="kernel cases that declare a sweep; a pattern may hold *")
    parser.add_argument("--target", action="append", default=[], metavar="T", help="default: every device here")
    parser.add_argument(
        "--dtype", action="append", default=[], metavar="D", help="default: the case's float16, or first"
    )
    parser.add_argument(
        "--size", action="append", type=int, default=[], metavar="N", help="default: the sweep that the case declares"
    )
    parser.add_argument("--results", type=Path, metavar="FILE", help="where to write the JSON Lines")
    parser.add_argument("-o", "--output", type=Path, metavar="FOLDER", help="write a page with curves there")
    parser.add_argument("--warmup-ms", type=float, default=25.0)
    parser.add_argument("--rep-ms", type=float, default=100.0)


def main(args: argparse.Namespace) -> int:
    """Sweep. Raises `ValueError` for names that are nothing, or where no device is."""
    if wrong := [n for n in args.size if n < 1]:
        raise ValueError(f"--size {wrong[0]}: a size is a positive number")
    path = find_matrix(Path.cwd())
    results = args.results or new_results(Path.cwd())
    options = {"timing": True, "warmup_ms": args.warmup_ms, "rep_ms": args.rep_ms}
    with temporary_folder() as folder:
        harness = Harness(read_matrix(path) if path else Matrix(), folder, Path.cwd(), options)
        try:
            check(
                Asked(tuple(args.kernel), (), tuple(args.target), tuple(args.dtype)),
                harness.catalogue,
                harness.adapters,
            )
            targets = _devices(harness.catalogue, args.target)
            cases = _swept(harness.catalogue, args.kernel, args.dtype)
            recorded = Selection(tuple(args.kernel), (), tuple(t.id for t in targets), tuple(args.dtype), "sweep")
            with Writer(results, provenance.header_of(harness, recorded, 0)) as writer:
                right = [
                    _sweep(harness, writer, case, target, dtype, args.size or case.sweep)
                    for case in cases for target in targets for dtype in args.dtype or [_dtype(case)]
                ]  # fmt: skip
                writer.finish(provenance.now())
        finally:
            harness.close()
    print(f"results in {results}")
    if args.output:
        from portability.cli import main as command

        command(["table", str(results), "--format", "html", "-o", str(args.output)])
    return 0 if all(right) else 1


def _dtype(case: CaseInfo) -> str:
    return "float16" if "float16" in case.dtypes else case.dtypes[0]


def _devices(catalogue: Catalogue, asked: Sequence[str]) -> list[Target]:
    """Return the targets that run here; of those asked for, every one must."""
    here = [t for t in catalogue.targets if t.evidence is Evidence.RAN]
    for target in catalogue.targets:
        if target.id in asked and target not in here:
            raise ValueError(f"{target.id} does not run here, and a sweep is a measurement: {target.why}")
    if not here:
        raise ValueError("no device here, and a sweep is a measurement; portability doctor says what is missing")
    return [t for t in here if not asked or t.id in asked]


def _swept(catalogue: Catalogue, patterns: Sequence[str], dtypes: Sequence[str]) -> list[CaseInfo]:
    """Return the cases of these names, each with a sweep and all the dtypes."""
    swept = [c for c in catalogue.cases if c.sweep]
    for pattern in patterns:
        if not any(fnmatchcase(c.name, pattern) for c in swept):
            names = ", ".join(c.name for c in swept) or "none"
            raise ValueError(f"{pattern} declares no sweep (KernelCase.sweep); those that do: {names}")
    cases = [c for c in swept if any(fnmatchcase(c.name, p) for p in patterns)]
    for case in cases:
        for dtype in dtypes:
            if dtype not in case.dtypes:
                raise ValueError(f"--dtype {dtype}: {case.name} takes {', '.join(case.dtypes)}")
    return cases


def _sweep(harness: Harness, writer: Writer, case: CaseInfo, target: Target, dtype: str, sizes: Sequence[int]) -> bool:
    from tabulate import tabulate

    made: list[tuple[int, Observation]] = []
    for size in sizes:
        cell = Cell(case.name, dtype, f"{SWEPT}{size}", target.id, target.environment)
        blocks, source = blocks_of(cell, case, harness.matrix, harness.adapters, target)
        observation = harness.run_with(cell, target, blocks, source)
        writer.write(observation)
        made.append((size, observation))
    print(f"{case.name}, {dtype}, {target.device or target.id}")
    shortest = min((o.timing.median for _, o in made if o.timing), default=0.0)
    heads = (case.sweep_axis, "time", "torch", "torch / ours", "GB/s", "TFLOP/s", "of the ceiling", "bound by")
    print(tabulate([_row(size, o, shortest) for size, o in made], headers=heads))
    print("\n".join([*tunings([t for _, o in made for t in o.tunings]), ""]))
    return all(o.outcome == "pass" for _, o in made)


def _row(size: int, observation: Observation, shortest: float) -> tuple[str, ...]:
    t = observation.timing
    if t is None or not t.stable:
        first = (observation.detail.splitlines() or ["not timed, as the case names no launch"])[0]
        why = f"unstable, spread {t.spread:.0%}" if t else f"{observation.outcome}: {first}"
        return (str(size), "-", "-", "-", "-", "-", "-", why)
    return (
        str(size),
        duration(t.median),
        duration(t.torch_median) if t.torch_median else "-",
        f"{t.torch_median / t.median:.2f}" if t.torch_median else "-",
        f"{t.gbps:.0f}" if t.gbps else "-",
        f"{t.tflops:.1f}" if t.tflops else "-",
        f"{t.ceiling:.0%} of {t.ceiling_of}" if t.ceiling else "-",
        bound(t, shortest),
    )


def tunings(made: Sequence[Tuning]) -> list[str]:
    """Return what tuning cost over the sizes, a line a kernel: each new key is tuned anew."""
    return [
        f"{kernel}: tuned for {len(keys)} keys, {max(t.configurations for t in keys)} configurations each at the most, "
        f"in {sum(t.seconds for t in keys):.1f} s"
        for kernel in dict.fromkeys(t.kernel for t in made)
        for keys in [[t for t in made if t.kernel == kernel]]
    ]


def bound(timing: Timing, shortest: float) -> str:
    """Say what a time is bound by: the launch where it hardly grows with size, else what its ceiling is of."""
    if timing.median <= LATENCY * shortest and (timing.ceiling or 0) < 0.5:
        return "launch latency"
    if not timing.ceiling_of:
        return "not known: the case has no cost model"
    return "bandwidth" if timing.ceiling_of.startswith("copy") else "arithmetic"
