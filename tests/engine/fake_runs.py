"""Small runs for tests of what is made of runs: two kernels, a probe, and four targets."""

from __future__ import annotations

from typing import Any

from portability.merge import Merged, merge
from portability.model import (
    CaseInfo,
    Cell,
    Evidence,
    Expectation,
    Observation,
    Outcome,
    SampleInfo,
    Target,
    Timing,
)
from portability.results import Footer, Header, Provenance, Run, Selection

CASES = (
    CaseInfo("matmul", ("float32", "float16"), (SampleInfo("64x64"), SampleInfo("tall", dtypes=("float16",)))),
    CaseInfo("vector_add", ("float32",), (SampleInfo("257"), SampleInfo("0"))),
    CaseInfo("tl.exp", ("float32",), (SampleInfo("64"),), group="math", names=("exp",)),
)
TARGETS = (
    Target("cuda:80", "cuda", "A100", evidence=Evidence.COMPILED, why="no such GPU", remedy="run it on an A100"),
    Target("cuda:90", "cuda", "H100", evidence=Evidence.COMPILED),
    Target("hip:gfx942", "rocm", "MI300X", evidence=Evidence.COMPILED),
    Target("npu:910B", "ascend", why="triton-ascend is not installed", remedy="portability env create ascend"),
)
CLAIMS = {t.id: ("float32", "float16") for t in TARGETS}


def cell(target: str = "cuda:90", kernel: str = "matmul", dtype: str = "float16", sample: str = "64x64") -> Cell:
    return Cell(kernel, dtype, sample, target)


def seen(
    outcome: Outcome = Outcome.PASS, evidence: Evidence = Evidence.COMPILED, of: Cell | None = None, **fields: Any
) -> Observation:
    fields = {"launches": 1, "versions": {"triton": "3.9.0"}, "when": "2026-11-03T12:00:00+00:00", **fields}
    return Observation(of or cell(), evidence, outcome, **fields)


def rule(
    *outcomes: Outcome, reason: str = "known", place: str = "matrix.toml: [[expect]] 1", **fields: Any
) -> Expectation:
    return Expectation(reason, outcomes, place, **fields)


def timing(median: float, spread: float = 0.02, **fields: Any) -> Timing:
    half = median * spread / 2
    fields = {"method": "graph", "repetitions": 100, "warmup_ms": 25, "rep_ms": 100, "stable": True, **fields}
    return Timing(median, median - half, median + half, spread=spread, **fields)


def header(
    *rules: Expectation, name: str = "run-1", started: str = "2026-11-03T11:00:00+00:00", **fields: Any
) -> Header:
    provenance = Provenance(host="laptop", triton="3.9.0", commit="abc123", started=started)
    fields = {"provenance": provenance, "targets": TARGETS, "cases": CASES, "claims": CLAIMS, **fields}
    return Header(name, expectations=rules, selection=Selection(cells=9), **fields)


def run(*observations: Observation, of: Header | None = None, file: str = "run-1.jsonl") -> Run:
    return Run(of or header(), observations, Footer("2026-11-03T13:00:00+00:00"), file)


def merged(*observations: Observation, of: Header | None = None) -> Merged:
    return merge([run(*observations, of=of)])
