"""Runs that hold one of everything that the page shows."""

from __future__ import annotations

from dataclasses import replace

from portability.merge import Merged, merge
from portability.model import Accuracy, Cell, Evidence, Finding, Observation, Outcome, Resources, SampleInfo, Target
from portability.results import Header, Provenance
from portability.table import PACKAGE
from tests.engine.fake_runs import CASES, CLAIMS, TARGETS, cell, header, rule, run, seen, timing

RAN, INTERPRETED, NONE = Evidence.RAN, Evidence.INTERPRETED, Evidence.NONE
RECORDED = replace(CASES[1], name="rms_norm", group=f"{PACKAGE}liger-kernel 0.5", samples=(SampleInfo("1x1"),))
PROBE = replace(CASES[2], name="tl.sort", group="sort", names=("sort",))
INTERPRETER = Target("interpreter", "interpreter", evidence=INTERPRETED)
RULE = rule(
    Outcome.COMPILE_ERROR,
    kernel=("vector_add",),
    target=("hip:gfx942",),
    reason="no TF32 on gfx942",
    link="https://example.org/issues/7",
    match="input_precision",
)
BINARY = Resources(
    "matmul_kernel", 168, 0, 0, 205_744, 163_840, 256, 1024,
    occupancy=0.25, occupancy_limit="shared", matrix="v_mfma_f32_32x32x8_f16", hash="ab" * 32, config="BLOCK_M: 128",
)  # fmt: skip
TIMED = timing(
    0.204, gbps=1200.0, tflops=642.0, torch_median=0.255, ceiling=0.823, ceiling_of="matmul float16 780 TFLOP/s"
)
F32, TALL = cell(dtype="float32"), cell(sample="tall")
HALF = Accuracy(2e-7, 4e-7, 0.5)
WRONG_CELL = "matmul-float16-64x64-hip:gfx942"


def _header(name: str, day: int, host: str, triton: str = "3.9.0") -> Header:
    made = header(RULE, name=name, cases=(*CASES, PROBE, RECORDED), targets=(*TARGETS, INTERPRETER))
    claims = {**CLAIMS, "cuda:80": ("float32",)}
    provenance = Provenance(
        host=host, os="Linux x86_64", triton=triton, torch="2.13.0", driver="580.1", commit="abc123", started=_at(day)
    )
    return replace(made, claims=claims, provenance=provenance)


def _at(day: int) -> str:
    return f"2026-11-{day:02}T12:00:00+00:00"


def everything() -> Merged:
    """Return two machines and an older run: passes of every evidence, faults, rules, refusals, and what is missing."""
    return merge([run(*_older(), of=_header("old", 1, "laptop")), run(*_laptop(), of=_header("new", 3, "laptop")),
                  run(*_lab(), of=_header("lab", 2, "lab", "3.8.0"))])  # fmt: skip


def _older() -> list[Observation]:
    return [seen(of=cell("hip:gfx942"), when=_at(1))]


def _laptop() -> list[Observation]:
    mi300 = "hip:gfx942"
    return [
        seen(), seen(of=F32), seen(of=TALL),
        seen(Outcome.UNSUPPORTED, of=cell("cuda:80"), detail="not claimed"),
        seen(of=cell("cuda:80", dtype="float32")),
        seen(
            Outcome.OUT_OF_RESOURCES, of=cell(mi300), when=_at(3), stage="launch", line="kernels/matmul.py:41",
            detail="205744 B of shared memory, 163840 there\nReduce num_stages.", resources=(BINARY,),
            blocks={"BLOCK_M": 128, "num_warps": 8}, blocks_from='rocm.toml [matmul."*"]',
            warnings=(Finding("grid-limit", "close to the limit", "kernels/matmul.py:7"),),
        ),
        seen(of=cell(mi300, dtype="float32")),
        seen(Outcome.COMPILE_ERROR, of=Cell("vector_add", "float32", "257", mi300), detail="input_precision must be"),
        seen(Outcome.TIMEOUT, of=Cell("vector_add", "float32", "257", "cuda:90"), stage="compile"),
        seen(evidence=INTERPRETED, of=Cell("vector_add", "float32", "257", "interpreter"), accuracy=HALF),
        seen(Outcome.UNAVAILABLE, NONE, of=cell("npu:910B"), detail="triton-ascend is not installed"),
        seen(of=Cell("tl.exp", "float32", "64", "cuda:90")), seen(of=Cell("tl.exp", "float32", "64", mi300)),
        seen(Outcome.COMPILE_ERROR, of=Cell("tl.sort", "float32", "64", mi300)),
        seen(of=Cell("rms_norm", "float32", "1x1", "cuda:90")),
    ]  # fmt: skip


def _lab() -> list[Observation]:
    versions = {"triton": "3.8.0", "torch": "2.12.0"}
    timed = seen(evidence=RAN, of=cell(), device="NVIDIA H200", versions=versions, timing=TIMED, when=_at(2))
    wrong = seen(
        Outcome.WRONG, RAN, F32, device="NVIDIA H200", versions=versions, when=_at(2), accuracy=Accuracy(0.3, 0.1, 3.0)
    )
    return [timed, wrong]
