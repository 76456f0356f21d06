"""A run of many cells with all that a cell can hold, for tests of size and speed."""

from __future__ import annotations

from dataclasses import replace

from portability.merge import Merged, merge
from portability.model import (
    Accuracy,
    CaseInfo,
    Cell,
    Evidence,
    Finding,
    Observation,
    Outcome,
    Resources,
    SampleInfo,
    Target,
    Timing,
)
from portability.results import Footer, Header, Provenance, Run
from tests.engine.fake_runs import header, rule, timing

DTYPES = ("float32", "float16", "bfloat16", "int32")
SAMPLES = tuple(SampleInfo(name) for name in ("257x129x65", "64x64x64-transposed", "1x1x1"))
SAMPLE_NAMES = [s.name for s in SAMPLES]
GROUPS = ("math", "memory", "reduction", "linear algebra", "atomics")
KERNELS = tuple(CaseInfo(f"kernel_{i}", DTYPES, SAMPLES, "kernels/k.py", summary=f"Kernel {i}.") for i in range(30))
PROBES = tuple(
    CaseInfo(f"tl.probe_{i}", DTYPES[:2], SAMPLES[:1], "kernels/api/p.py", GROUPS[i % 5], (f"probe_{i}",))
    for i in range(180)
)
NVIDIA = ("cuda:75", "cuda:80", "cuda:86", "cuda:89", "cuda:90", "cuda:100", "cuda:120")
AMD = ("hip:gfx90a", "hip:gfx942", "hip:gfx950", "hip:gfx1100", "hip:gfx1201")
TARGETS = (
    Target("cuda:90", "cuda", "H200", evidence=Evidence.RAN, device="NVIDIA H200"),
    *(Target(t, "cuda", evidence=Evidence.COMPILED, why="no such GPU") for t in NVIDIA if t != "cuda:90"),
    Target("interpreter", "interpreter", evidence=Evidence.INTERPRETED),
    *(Target(t, "rocm", evidence=Evidence.COMPILED, why="no such GPU") for t in AMD),
    Target("npu:910B", "ascend", why="triton-ascend is not installed", remedy="portability env create ascend"),
)


def many(runs: int = 1) -> Merged:
    """Return about 10,000 cells: 30 kernels × 4 dtypes × 3 samples and 180 probes × 2 dtypes on 14 targets."""
    rules = (rule(Outcome.COMPILE_ERROR, kernel=("kernel_7",), reason="no such instruction there"),)
    made = header(*rules, cases=(*KERNELS, *PROBES), targets=TARGETS, claims={})
    return merge(_run(replace(made, run=f"run-{i}", provenance=_provenance(i)), i) for i in range(runs))


def _provenance(i: int) -> Provenance:
    return Provenance(host="laptop", triton="3.9.0", torch="2.13.0", started=f"2026-11-{i + 1:02}T11:00:00+00:00")


def _run(header: Header, number: int) -> Run:
    observations = tuple(
        _observation(Cell(case.name, dtype, sample.name, target.id), target, n * 31 + i, number)
        for i, case in enumerate((*KERNELS, *PROBES))
        for dtype in case.dtypes
        for sample in case.samples
        for n, target in enumerate(TARGETS)
    )
    return Run(header, observations, Footer("2026-11-03T13:00:00+00:00"), f"run-{number}.jsonl")


def _observation(cell: Cell, target: Target, n: int, run: int) -> Observation:
    when = f"2026-11-{run + 1:02}T12:00:00+00:00"
    if target.evidence is Evidence.NONE:
        return Observation(cell, Evidence.NONE, Outcome.UNAVAILABLE, "open", target.why, when=when)
    known = cell.kernel == "kernel_7"
    outcome = Outcome.COMPILE_ERROR if known else Outcome.WRONG if n % 97 == 0 else Outcome.PASS
    binary = Resources(
        cell.kernel, 64 + n % 190, n % 3, 0, n * 1024 % 200_000, 232_448, 256, 1024,
        occupancy=0.5, occupancy_limit="registers", matrix="wgmma.mma_async", hash=f"{n * 0x9E3779B97F4A7C15:064x}",
    )  # fmt: skip
    timed = target.evidence is Evidence.RAN and cell.dtype == "float32"
    return Observation(
        cell,
        target.evidence,
        outcome,
        detail="" if outcome is Outcome.PASS else "first line of what went wrong\nsecond line",
        line="" if outcome is Outcome.PASS else "kernels/k.py:41",
        warnings=(Finding("grid-limit", "near the limit"),) if n % 50 == 0 else (),
        accuracy=Accuracy(1e-6 * n, 1e-3, n / 1000) if target.evidence.executes else None,
        resources=(binary,) if target.evidence is not Evidence.INTERPRETED else (),
        timing=_timing(n + 10 * SAMPLE_NAMES.index(cell.sample)) if timed else None,
        launches=1,
        blocks={"BLOCK_M": 128, "BLOCK_N": 64, "num_warps": 8},
        blocks_from='cuda.toml [matmul."cuda:90"]',
        seconds=0.25 + n / 1e4,
        versions={"triton": "3.9.0", "torch": "2.13.0"},
        device=target.device,
        when=when,
    )


def _timing(n: int) -> Timing:
    return timing(0.1 + n % 40 / 50, gbps=3000.0 - n, tflops=20.0 + n, torch_median=0.2, ceiling=0.8,
                  ceiling_of="copy 4257 GB/s")  # fmt: skip
