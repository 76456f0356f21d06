"""What the harness costs over a bare loop of the same compiles: seconds of both, from cold caches, in one run.

    python benchmarks/overhead.py [--kernel NAME]... [--target ID]... [--rounds N] [--probes]

The bare loop calls `triton.compile` on the very specialisations that the cells launch, in one process, and nothing
else. The harness runs the same cells as `pytest` does, through a runner and its pipe. What a process does once
(imports, LLVM's start, Triton's hash of its own files) is outside both, and printed beside: each has compiled another
kernel before its clock starts.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from portability.catalogue import Selection, cells
from portability.harness import Harness
from portability.matrix import Matrix, Samples
from portability.model import Cell, Evidence, from_json, to_json
from portability.pool import temporary_folder

TARGETS = ("cuda:80", "hip:gfx942")
FIRST = "tl.exp"  # the probe that each process compiles before its clock starts


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernel", action="append", default=[])
    parser.add_argument("--target", action="append", default=[])
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--probes", action="store_true", help="the API probes, all dtypes, in place of the kernels")
    parser.add_argument("--bare", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.bare:
        print(json.dumps(bare(json.load(sys.stdin))))
        return 0
    with temporary_folder() as folder:
        chosen = select(folder, args.kernel, args.target or TARGETS, args.probes)
        rounds = [measure(folder, chosen) for _ in range(args.rounds)]
    loop, harness, once = (statistics.median(r[i] for r in rounds) for i in (0, 1, 2))
    ratios = sorted(r[1] / r[0] for r in rounds)
    each = 1e3 * harness / len(chosen)
    print(f"{len(chosen)} cells: bare loop {loop:.2f} s, harness {harness:.2f} s, {each:.0f} ms a cell")
    print(f"once in a process, outside both: {once:.2f} s for its first cell")
    print(f"ratio {statistics.median(ratios):.3f} (from {ratios[0]:.3f} to {ratios[-1]:.3f} in {args.rounds} rounds)")
    return 0


def select(folder: Path, kernels: list[str], targets: Any, probes: bool) -> list[dict[str, Any]]:
    """Return the cells with what the runner needs to run them."""
    harness = Harness(Matrix(), folder, Path.cwd(), {})
    samples = Samples.FULL if probes else Samples.QUICK
    selection = Selection(tuple(kernels), targets=tuple(targets), samples=samples)
    found = [
        c
        for c in cells(harness.catalogue, harness.matrix, selection, harness.adapters)
        if bool(harness.catalogue.case(c.kernel).group) is probes
    ]
    chosen = [c for c in found if harness.catalogue.target(c).evidence is Evidence.COMPILED]
    passing = [c for c in chosen if harness.run(c).outcome == "pass"]  # a refused cell has no compile to compare with
    harness.close()
    return [to_json(c) for c in passing]


def measure(folder: Path, chosen: list[dict[str, Any]]) -> tuple[float, float, float]:
    """Return the seconds of the bare loop, of the harness, each from a cold cache, and of the harness's first cell."""
    with tempfile.TemporaryDirectory(dir=folder) as cold:
        command = [sys.executable, __file__, "--bare"]
        made = subprocess.run(
            command, input=json.dumps({"cells": chosen, "cache": cold}), text=True, capture_output=True, check=True
        )
        loop = float(json.loads(made.stdout.splitlines()[-1]))
    with tempfile.TemporaryDirectory(dir=folder) as cold:
        harness = Harness(Matrix(), folder, Path.cwd(), {})
        _ = harness.catalogue  # starts the runner
        runner = harness._runner("default")
        runner.close()
        runner.environment = type(runner.environment)("default", sys.executable, {"TRITON_CACHE_DIR": cold})
        runner.ask({"op": "catalogue", "ask": []}, 300)
        targets = tuple({c["target"] for c in chosen})
        selection = Selection((FIRST,), targets=targets, samples=Samples.QUICK)
        began = time.perf_counter()
        for first in cells(harness.catalogue, harness.matrix, selection, harness.adapters):
            harness.run(first)
        once = time.perf_counter() - began
        began = time.perf_counter()
        for cell in chosen:
            harness.run(from_json(Cell, cell))
        took = time.perf_counter() - began
        harness.close()
    return loop, took, once


def bare(request: dict[str, Any]) -> float:
    """Return the seconds that `triton.compile` takes for what the cells launch."""
    import os

    os.environ["TRITON_CACHE_DIR"] = request["cache"]
    import triton
    from triton.compiler import ASTSource

    from portability import backend as backends
    from portability import catalogue as catalogues
    from portability import kernel as kernels
    from portability.run import inputs_of
    from portability.runner import catalogue

    known = catalogues.from_text(catalogue((), (), ()))
    adapters, cases = backends.discover(), kernels.discover().cases
    jobs = []
    with tempfile.TemporaryDirectory() as scratch:
        triton.knobs.cache.dir = scratch
        for data in request["cells"]:
            cell = from_json(Cell, data)
            target = known.target(cell)
            blocks, _ = catalogues.blocks_of(cell, known.case(cell.kernel), Matrix(), adapters, target)
            import torch

            inputs = inputs_of(
                cases[cell.kernel], cases[cell.kernel].sample(cell.sample), getattr(torch, cell.dtype), blocks, 0
            )
            with adapters[target.backend].open(target) as session:
                cases[cell.kernel].operator(*inputs, blocks=blocks)
            jobs += [(x.function, x.compiled.src, x.compiled.metadata.target, x.options) for x in session.launches]
    triton.knobs.cache.dir = request["cache"]
    seen: set[str] = set()
    began = time.perf_counter()
    for function, source, target, options in jobs:
        made = triton.compile(
            ASTSource(function, source.signature, source.constants, source.attrs), target=target, options=dict(options)
        )
        seen.add(made.hash)
    return time.perf_counter() - began


if __name__ == "__main__":
    sys.exit(main())
