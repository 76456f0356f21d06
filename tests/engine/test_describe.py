"""What is known of a target: every fact has a source, and what can be compiled again is."""

# mypy: disable-error-code="untyped-decorator, no-untyped-def"
# (a jitted kernel is no Python to a type checker)

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import triton
import triton.language as tl

from portability.backend import Backend, discover
from portability.cli import main
from portability.device import DeviceBackend
from portability.facts import described, facts_of, path_of
from portability.tomltable import MatrixError

BUNDLED = [discover()[name] for name in ("cuda", "rocm", "ascend", "interpreter")]
TARGETS = [(a, t) for a in BUNDLED for t in a.targets]
COMPILED = [(a, t) for a, t in TARGETS if isinstance(a, DeviceBackend)]
FIRST = ("device", "compute", "memory", "matrix", "software", "triton", "limits")


@pytest.mark.parametrize(("adapter", "target"), TARGETS, ids=lambda x: getattr(x, "name", x))
def test_every_target_is_described_and_every_fact_has_a_source(adapter: Backend, target: str) -> None:
    sections = described(facts_of(adapter, target), adapter, target).sections
    assert [s for s in FIRST if s != "device" and not sections[s]] == []
    assert [f.name for found in sections.values() for f in found if not f.value or not f.source] == []


@pytest.mark.parametrize(("adapter", "target"), COMPILED, ids=lambda x: getattr(x, "name", x))
def test_a_matrix_instruction_is_named_for_every_dtype_that_has_a_product(adapter: Backend, target: str) -> None:
    """And for no dtype that the adapter does not claim."""
    named = {f.name for f in facts_of(adapter, target).sections["matrix"]}
    claimed = set(adapter.lookup(adapter.dtypes, target, ()))
    assert named <= claimed
    assert {"float16", "bfloat16", "float32"} <= named


def test_a_specific_fact_wins_and_a_family_gives_the_rest() -> None:
    cuda = discover()["cuda"]
    assert facts_of(cuda, "cuda:75").stages == "no loop is pipelined"
    assert facts_of(cuda, "cuda:90").stages.startswith("loads of a loop run ahead")
    assert facts_of(cuda, "cuda:103").stages == facts_of(cuda, "cuda:100").stages
    assert facts_of(cuda, "cuda:80").float8 == ()
    assert facts_of(discover()["rocm"], "hip:gfx942").float8 == ("float8_e4m3fnuz", "float8_e5m2fnuz")
    assert facts_of(discover()["interpreter"], "interpreter").float8 is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('["*".memory]\nL2 = { is = "4 MB" }', "L2 = .*: what it is, and a source, are needed"),
        ('["*".memery]\nL2 = "4 MB"', "unknown key 'memery'; nearest is memory"),
        ('["*".memory]\nL2 = { was = "4 MB", source = "x" }', "unknown key 'was'"),
        ('["*".memory]\nL2 = 4', "4"),
    ],
)
def test_a_fact_without_a_source_or_in_no_section_is_refused(tmp_path: Path, text: str, words: str) -> None:
    class Mine(Backend):
        name = "mine"

        def block_table(self) -> Path:
            return tmp_path / "mine.toml"

    adapter = Mine()
    path_of(adapter).write_text(text)
    with pytest.raises(MatrixError, match=words):
        facts_of(adapter, "mine:1")


def test_the_command_prints_sources_and_imports_neither_torch_nor_triton() -> None:
    code = (
        "import sys; from portability.cli import main; code = main(['describe', 'hip:gfx942']);"
        "print(sorted({'torch', 'triton'} & set(sys.modules))); sys.exit(code)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "from: AMD GPU specifications, ROCm documentation" in done.stdout
    assert done.stdout.rstrip().endswith("[]")


def test_json_holds_every_section_with_names_values_and_sources(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["describe", "cuda:90", "--format", "json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert (data["version"], data["target"], data["backend"]) == (1, "cuda:90", "cuda")
    assert {"name": "shared memory of a program", "is": "232,448 B (227 KiB)"}.items() <= data["limits"][0].items()
    assert [f["is"] for f in data["matrix"] if f["name"] == "float16"] == ["wgmma f16"]


def test_markdown_is_a_table_for_each_section(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["describe", "npu:Ascend910B3", "--format", "markdown"]) == 0
    assert "| L0C | 128 KiB a cube core: the accumulator | dlti.target_system_spec" in capsys.readouterr().out


def test_a_target_that_is_none_is_refused_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["describe", "hip:gfx94"]) == 2
    assert "nearest are hip:gfx942" in capsys.readouterr().err
    assert main(["describe", "cuda:9"]) == 2


# --------------------------------------------------------------------------------------------- compiled once more


@triton.jit
def product_kernel(a_ptr, b_ptr, c_ptr, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)[:, None] * SIZE + tl.arange(0, SIZE)[None, :]
    tl.store(c_ptr + at, tl.dot(tl.load(a_ptr + at), tl.load(b_ptr + at)))


def instruction(adapter: DeviceBackend, target: str, dtype: str) -> str:
    """Return the matrix instruction of one product of two loaded blocks of 64 x 64."""
    a = torch.zeros(64 * 64).to(getattr(torch, dtype))
    out = torch.zeros(64 * 64, dtype={"int8": torch.int32, "float64": torch.float64}.get(dtype, torch.float32))
    opened = next(t for t in adapter.status() if t.id == target)
    with adapter.open(opened) as session:
        product_kernel[(1,)](a, a, out, SIZE=64)
    found = session.resources(session.launches[-1])
    assert found is not None
    return found.matrix


@pytest.mark.skipif(not triton.__version__.startswith("3.9."), reason="the facts are those of Triton 3.9's assembly")
@pytest.mark.parametrize(
    ("target", "dtype"), [("cuda:80", "float32"), ("hip:gfx942", "float16"), ("hip:gfx1201", "float8_e5m2")]
)
def test_what_is_said_of_an_instruction_is_what_the_assembly_holds(target: str, dtype: str) -> None:
    adapter = next(a for a, t in COMPILED if t == target)
    assert isinstance(adapter, DeviceBackend)
    said = next(f.value for f in facts_of(adapter, target).sections["matrix"] if f.name == dtype)
    assert instruction(adapter, target, dtype) == said


@pytest.mark.slow
@pytest.mark.skipif(not triton.__version__.startswith("3.9."), reason="the facts are those of Triton 3.9's assembly")
@pytest.mark.parametrize(("adapter", "target"), COMPILED, ids=lambda x: getattr(x, "name", x))
def test_every_matrix_instruction_is_still_what_is_said(adapter: DeviceBackend, target: str) -> None:
    said = {f.name: f.value for f in facts_of(adapter, target).sections["matrix"]}
    assert {dtype: instruction(adapter, target, dtype) for dtype in said} == said
