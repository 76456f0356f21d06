"""What a run of every API probe costs from an empty cache and from a warm one: of the processor, and by the clock.

    python benchmarks/api_time.py --target cuda:90 --target hip:gfx942 [--probe PATTERN]... [--warm] [--workers 2]
    python benchmarks/api_time.py --whole        # all targets in one run: what a person waits for

Each target's probes, all dtypes, run by `portability run --full --no-timing`: twice in a cache folder of its own, or
with `--warm` in the one that is there, and the second run counts. The clock tells of this machine with all else that it
did meanwhile (its load is printed); seconds of the processor, of all processes of a run, tell less of that. What a run
costs before and after its cells is measured by a run of four cells, and counts once in what is told of the whole set:
that is seconds of the processor over the workers, as it is if all of them are busy to the end. What was not measured is
taken by the cell as the mean of what was, and said to be an extrapolation.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from portability.backend import discover
from portability.baselines.files import probes

TARGETS = ("cuda:90", "hip:gfx942")
FEW = ("tl.abs", "tl.cos", "tl.exp", "tl.sin", "--dtype=float32")  # two for each of two workers


@dataclass(frozen=True)
class Cost:
    """What one run took."""

    cells: int
    processor: float  # seconds, of all its processes
    clock: float  # seconds


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", action="append", default=[])
    parser.add_argument("--probe", action="append", default=[], help="only these; a pattern may hold * (repeatable)")
    parser.add_argument("--whole", action="store_true", help="every target that compiles, and the interpreter, at once")
    parser.add_argument("--warm", action="store_true", help="in the cache that is there, and none from an empty one")
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()
    chosen, names = args.target or TARGETS, args.probe or everything()
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores before it began")
    with tempfile.TemporaryDirectory(prefix="portability-") as folder:
        cache = os.environ.get("PORTABILITY_CACHE", "") if args.warm else folder
        idle = run(chosen[0], FEW, args.workers, cache)
        print(f"before and after the cells: {idle.processor:.1f} s of the processor, {idle.clock:.1f} s", flush=True)
        if args.whole:
            for kind in ("warm",) if args.warm else ("cold", "warm"):
                say("the whole set", kind, run("", names, args.workers, cache), idle)
            return 0
        cold, warm = {}, {}
        for target in chosen:
            cold[target] = run(target, names, args.workers, cache)
            if not args.warm:
                say(target, "cold", cold[target], idle)
            warm[target] = run(target, names, args.workers, cache)
            say(target, "warm", warm[target], idle)
    if not args.warm:
        print(whole("cold", cold, idle, args.workers))
    print(whole("warm", warm, idle, args.workers))
    return 0


def say(target: str, kind: str, cost: Cost, idle: Cost) -> None:
    """Print what a target's run took."""
    each = 1e3 * (cost.processor - idle.processor) / cost.cells
    of = f"{cost.cells} cells, {cost.processor:.1f} s of the processor ({each:.1f} ms a cell)"
    print(f"{target} {kind}: {of}, {cost.clock:.1f} s; load {os.getloadavg()[0]:.1f}", flush=True)


def everything() -> Sequence[str]:
    """Return patterns that name every probe, and no kernel: those have no dot."""
    return ("*.*", *(name for name in probes() if "." not in name))


def everywhere() -> Sequence[str]:
    """Return the targets that a Triton as it is installed compiles for, and the interpreter."""
    return [t for b in discover().values() if b.environment == "default" for t in b.targets]


def run(target: str, kernels: Sequence[str], workers: int, cache: str) -> Cost:
    """Run `kernels` on one target, "" for all; `cache` is the folder of compiled kernels, "" for that of every run."""
    with tempfile.NamedTemporaryFile(suffix=".jsonl") as file:
        before, began = _children(), time.perf_counter()
        variables = {**os.environ, **({"PORTABILITY_CACHE": cache} if cache else {})}
        command = [sys.executable, "-m", "portability.cli", "run", *kernels, "--full", "--no-timing"]
        command += ["--target", target] if target else [f"--target={t}" for t in everywhere()]
        command += ["-n", str(workers), "--results", file.name]
        done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
        clock, processor = time.perf_counter() - began, _children() - before
        lines = [json.loads(line) for line in Path(file.name).read_text().splitlines()]
    if not lines or "finished" not in lines[-1]:
        raise RuntimeError(f"{target}: the run did not come to its end\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return Cost(len(lines) - 2, processor, clock)


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def whole(kind: str, costs: dict[str, Cost], idle: Cost, workers: int) -> str:
    """Return what every probe on every target that compiles, and in the interpreter, takes: in words."""
    each = {t: (c.processor - idle.processor) / c.cells for t, c in costs.items()}
    mean = statistics.mean(each.values())
    targets = everywhere()
    cells = sum(len(p.dtypes) for p in probes().values())  # of one target
    total = idle.processor + cells * sum(each.get(t, mean) for t in targets)
    measured = sum(c.cells for c in costs.values())
    how = "" if measured == cells * len(targets) else f", extrapolated from {measured} on {', '.join(costs)}"
    of = f"{cells * len(targets)} cells on {len(targets)} targets{how}"
    return f"{kind}, {of}: {total:.0f} s of the processor, {total / workers:.0f} s on {workers} cores"


if __name__ == "__main__":
    sys.exit(main())
