"""What compilers make of a kernel: stages, what differs between two, passes; and the errors of `portability ir`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from portability.catalogue import Catalogue
from portability.cli import main
from portability.harness import Harness
from portability.model import CaseInfo, Cell, Evidence, SampleInfo, Target
from portability.stages import passes
from portability.stages.asking import find_case, find_cell, find_target, read_blocks
from portability.stages.facts import accesses, facts, layouts, operations
from portability.stages.model import Compiled
from portability.stages.sides import beside, counterpart, pairs, summary

from .conftest import Project

MATRIX = '[matrix]\nkernels = ["faulty.cases"]\n'

# -------------------------------------------------------------------------------------------- widths of accesses


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("@%p1 ld.global.v4.b32 { %r1, %r2, %r3, %r4 }, [ %rd1 + 0 ];", "load global 16 B"),
        ("ld.global.L1::evict_last.b16 { %rs1 }, [ %rd1 ];", "load global 2 B"),
        ("st.global.v2.b64 [ %rd1 ], { %rd2, %rd3 };", "store global 16 B"),
        ("ld.shared.v4.b32 {%r1, %r2, %r3, %r4}, [%r5];", "load shared 16 B"),
        ("st.local.u32 [%rd1], %r1;", "store local 4 B"),
        ("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r1, %r2, %r3, %r4}, [%r5];", "load shared 16 B by ldmatrix"),
        ("cp.async.cg.shared.global [ %r1 + 0 ], [ %rd1 + 0 ], 0x10, %r2;", "copy global to shared 16 B"),
        ("atom.global.gpu.acq_rel.add.f32 %f1, [ %rd1 ], %f2;", "atomic global 4 B"),
        ("red.global.add.noftz.f16x2 [ %rd1 ], %r1;", "atomic global 4 B"),
        (
            "cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r2, %r3}], [%r4];",
            "tensor copy global to shared",
        ),
    ],
)
def test_ptx_accesses_are_told_by_space_and_width(line: str, said: str) -> None:
    assert dict(accesses({"ptx": f"\t{line}\n"})) == {said: 1}


def test_kernel_parameters_are_no_access_of_memory() -> None:
    assert not accesses({"ptx": "\tld.param.b64 \t%rd1, [add_kernel_param_0];\n"})


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("global_load_dwordx4 v[0:3], v[4:5], off", "load global 16 B"),
        ("global_load_b128 v[0:3], v[4:5], off", "load global 16 B"),
        ("buffer_load_ushort v1, v2, s[0:3], 0 offen", "load global 2 B"),
        ("buffer_store_short v1, v2, s[0:3], 0 offen", "store global 2 B"),
        ("global_store_d16_hi_b16 v0, v1, s[0:1]", "store global 2 B"),
        ("ds_read_b128 v[0:3], v4 offset:16", "load shared 16 B"),
        ("ds_read2_b64 v[0:3], v4 offset1:1", "load shared 16 B"),
        ("ds_load_2addr_b64 v[0:3], v4 offset1:1", "load shared 16 B"),
        ("ds_store_b64 v0, v[1:2]", "store shared 8 B"),
        ("ds_write_b16 v0, v1", "store shared 2 B"),
        ("scratch_store_dwordx2 off, v[0:1], s32", "store local 8 B"),
        ("buffer_load_dwordx4 v1, s[0:3], 0 offen lds", "copy global to shared 16 B"),
    ],
)
def test_amd_accesses_are_told_by_space_and_width(line: str, said: str) -> None:
    assert dict(accesses({"amdgcn": f"\t{line}\n"})) == {said: 1}


def test_llvms_ir_stands_in_where_there_is_no_assembly() -> None:
    llir = "  %5 = load <4 x i32>, ptr addrspace(1) %4, align 16\n  store half %6, ptr addrspace(3) %7, align 2\n"
    assert dict(accesses({"llir": llir})) == {"load global 16 B": 1, "store shared 2 B": 1}


# ------------------------------------------------------------------------------------------------ Triton's GPU IR

TTGIR = """#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1]}>
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#smem = #ttg.shared_memory
#loc1 = loc("kernels/matmul.py":31:0)
module attributes {"ttg.num-warps" = 4 : i32} {
  tt.func public @k(%a: !tt.ptr<f16>) {
    %0 = tt.load %1 : tensor<64x64x!tt.ptr<f16>, #blocked> loc(#loc1)
    %2 = ttg.local_alloc %0 : (tensor<64x64xf16, #blocked>) -> !ttg.memdesc<64x64xf16, #shared, #smem>
    %3 = ttng.warp_group_dot %2, %2, %4 : tensor<64x64xf32, #mma>
    %5 = tt.splat %6 : i32 -> tensor<64xi32>
  }
}
"""


def test_layouts_are_named_without_the_dialect() -> None:
    assert [line.partition("<")[0] for line in layouts(TTGIR)] == ["#blocked = blocked", "#mma = nvidia_mma"]


def test_operations_that_every_kernel_has_are_left_out() -> None:
    assert dict(operations(TTGIR)) == {"tt.load": 1, "ttg.local_alloc": 1, "ttng.warp_group_dot": 1}


def test_locations_go_and_the_rest_stays() -> None:
    bare = passes.without_locations(TTGIR)
    assert "loc(" not in bare
    assert bare.count("\n") == TTGIR.count("\n") - 1


# -------------------------------------------------------------------------------------------------------- passes

BEFORE = "// -----// IR Dump Before {} ({}) ('builtin.module' operation) //----- //\n{}\n"
FIRST, SECOND = "module {\n  tt.func @k() {\n  }\n}", 'module attributes {"ttg.num-warps" = 4 : i32} {\n}'


def test_a_pass_left_what_the_next_one_found() -> None:
    printed = BEFORE.format("Inliner", "inline", FIRST) + BEFORE.format("CSE", "cse", FIRST)
    printed += "a word of the compiler\n" + BEFORE.format("ConvertTritonToTritonGPU", "convert", FIRST)
    printed += BEFORE.format("Last", "last", SECOND)
    found = passes.read(printed)
    assert [(p.name, p.changed) for p in found] == [
        ("Inliner", False), ("CSE", False), ("ConvertTritonToTritonGPU", True), ("Last", True)
    ]  # fmt: skip
    assert found[2].ir == SECOND + "\n"
    assert passes.level(found[2].ir) == "ttgir"
    assert found[3].ir == ""


# ---------------------------------------------------------------------------------------------------- two sides


def made(label: str, **stages: str) -> Compiled:
    return Compiled(label, label.partition("#")[0], stages=stages)


def test_kernels_are_paired_by_name_and_what_one_side_lacks_stands_alone() -> None:
    left, right = [made("a"), made("b")], [made("b"), made("c")]
    assert [[c and c.label for c in pair] for pair in pairs(left, right)] == [["a", None], ["b", "b"], [None, "c"]]


def test_assembly_of_one_vendor_stands_beside_that_of_the_other() -> None:
    assert counterpart("ptx", made("k", ptx="", cubin="")) == "ptx"
    assert counterpart("ptx", made("k", amdgcn="")) == "amdgcn"
    assert counterpart("ptx", made("k", llir="", xeasm="")) == "xeasm"
    assert counterpart("ttgir", made("k", ptx="")) == ""


def test_what_differs_is_marked_and_what_is_equal_is_not() -> None:
    left = Compiled("k", "k", warps=4, stages={"ptx": "\tld.global.b32 %r1, [%rd1];\n"})
    right = Compiled("k", "k", warps=4, stages={"amdgcn": "\tglobal_load_dwordx4 v[0:3], v[4:5], off\n"})
    lines = {line.split()[0]: line for line in summary({"A": left, "B": right}, 120).splitlines() if line.strip()}
    assert "≠" in lines["accesses"]
    assert "4 B" in lines["accesses"]
    assert "16 B" in lines["accesses"]
    assert "≠" not in lines["warps"]


def test_lines_that_differ_in_registers_alone_stand_on_one_row() -> None:
    rows = list(beside("add %r1, %r2\nmul %r3, %r4", "add %r7, %r8\nfma %r9, %r9\nmul %r5, %r6", 60))
    assert [row[28:31].strip() for row in rows] == ["", ">", ""]


def test_facts_that_are_not_known_are_left_out() -> None:
    assert "registers" not in facts(made("k", ttir="module {\n}\n"))


# --------------------------------------------------------------------------------------------- what is meant

CASE = CaseInfo(
    "right", ("float32", "float16"), (SampleInfo("7"), SampleInfo("100", quick=True, dtypes=("float32",))),
    blocks={"BLOCK": 64},
)  # fmt: skip
TARGETS = (
    Target("cuda:90", "cuda", evidence=Evidence.RAN),
    Target("cuda:90", "cuda", environment="triton-3.6", evidence=Evidence.COMPILED),
    Target("hip:gfx942", "rocm", evidence=Evidence.COMPILED),
    Target("interpreter", "interpreter", evidence=Evidence.INTERPRETED, why="kernels are interpreted"),
    Target("npu:Ascend910B3", "ascend", why="not installed", remedy="portability env create ascend"),
)


@pytest.fixture
def harness() -> Harness:
    """Knows one case and a target of each kind; no runner is started."""
    made = Harness.__new__(Harness)
    made._catalogue = Catalogue((CASE,), TARGETS, {"mine.broken": "ImportError: no module named that"})
    return made


def test_a_device_is_compiled_for_as_if_it_were_not_here(harness: Harness) -> None:
    assert find_target(harness, "cuda:90").evidence is Evidence.COMPILED


def test_a_target_of_another_environment_is_named_with_it(harness: Harness) -> None:
    assert find_target(harness, "cuda:90").environment == "default"
    assert find_target(harness, "cuda:90@triton-3.6").environment == "triton-3.6"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("cuda:91", "no target 'cuda:91'; nearest is cuda:90"),
        ("cuda:90@triton-9", "no target 'cuda:90@triton-9'"),
        ("interpreter", "interpreter compiles nothing: kernels are interpreted; targets with stages are cuda:90"),
        ("npu:Ascend910B3", "not installed; portability env create ascend"),
    ],
)
def test_a_target_without_stages_is_refused_with_the_choices(harness: Harness, name: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        find_target(harness, name)


def test_a_kernel_that_is_none_is_refused_with_what_could_not_be_imported(harness: Harness) -> None:
    with pytest.raises(ValueError, match=r"no kernel 'rigth'.*right.*mine\.broken cannot be imported: ImportError"):
        find_case(harness, "rigth")


def test_without_a_choice_it_is_half_precision_and_the_quick_sample_of_that_dtype() -> None:
    assert find_cell(CASE, TARGETS[0]) == Cell("right", "float16", "7", "cuda:90")
    assert find_cell(CASE, TARGETS[0], "float32") == Cell("right", "float32", "100", "cuda:90")


@pytest.mark.parametrize(
    ("dtype", "sample", "said"),
    [("float61", "", "no dtype 'float61'"), ("float16", "100", "no sample '100' of float16")],
)
def test_a_cell_that_is_none_is_refused_with_the_choices(dtype: str, sample: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        find_cell(CASE, TARGETS[0], dtype, sample)


def test_blocks_are_those_of_the_case_and_the_options_of_launches() -> None:
    assert read_blocks("BLOCK=32, num_warps=8", CASE.blocks) == {"BLOCK": 32, "num_warps": 8}


@pytest.mark.parametrize(("text", "said"), [("BLOK=2", "no block 'BLOK'"), ("BLOCK=two", "a whole number is needed")])
def test_blocks_that_are_none_are_refused(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        read_blocks(text, CASE.blocks)


# ------------------------------------------------------------------------------------------------- the command


@pytest.fixture
def faulty(project: Callable[[str], Project], monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project with kernels of its own, in which commands are run."""
    made = project(MATRIX)
    monkeypatch.chdir(made.folder)
    monkeypatch.setenv("PYTHONPATH", str(made.folder))
    return made


@pytest.mark.slow
def test_a_stage_that_is_none_is_exit_code_2_and_named(faulty: Project, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ir", "right", "--target", "cuda:90", "--stage", "amdgcnn"]) == 2
    assert "no 'amdgcnn' of double_kernel; there are ttir" in capsys.readouterr().err


@pytest.mark.slow
def test_two_vendors_stand_beside_each_other_on_a_warm_cache_too(
    faulty: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["ir", "right", "--target", "cuda:90", "--against", "hip:gfx942", "--stage", "ptx", "--width", "160"]
    for _ in range(2):
        assert main(words) == 0
        said = capsys.readouterr().out
        assert ".target sm_90a" in said
        assert "s_endpgm" in said
        assert "load global 4 B" in said


@pytest.mark.slow
def test_passes_are_printed_on_a_warm_cache_too(faulty: Project, capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):
        assert main(["ir", "right", "--target", "cuda:90", "--passes", "--stage", "ttgir"]) == 0
        said = capsys.readouterr().out
        assert "ConvertTritonToTritonGPU" in said
        assert "#ttg.blocked" in said


@pytest.mark.slow
def test_every_stage_is_written(faulty: Project, tmp_path: Path) -> None:
    folder = tmp_path / "stages"
    assert main(["ir", "right", "--target", "cuda:90", "-o", str(folder)]) == 0
    assert {p.suffix for p in folder.iterdir()} == {".ttir", ".ttgir", ".llir", ".ptx", ".sass", ".cubin"}
    assert (folder / "double_kernel.cubin").read_bytes().startswith(b"\x7fELF")
    assert "EXIT" in (folder / "double_kernel.sass").read_text()


@pytest.mark.slow
def test_other_blocks_stand_beside_the_tables(faulty: Project, capsys: pytest.CaptureFixture[str]) -> None:
    """The bundled kernels are there in any project."""
    words = ["ir", "vector_add", "--target", "cuda:90", "--dtype", "float32", "--json"]
    blocks = ["--blocks", "BLOCK_SIZE=512", "--against-blocks", "BLOCK_SIZE=256,num_warps=8"]
    assert main([*words, *blocks]) == 0
    sides = list(json.loads(capsys.readouterr().out).values())
    assert [s["compiled"][0]["constants"]["BLOCK_SIZE"] for s in sides] == ["512", "256"]
    assert [s["compiled"][0]["warps"] for s in sides] == [4, 8]


@pytest.mark.slow
def test_what_does_not_compile_is_shown_as_far_as_it_came(faulty: Project, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ir", "over_limit", "--target", "hip:gfx942", "--against", "cuda:90"]) == 1
    said = capsys.readouterr().out
    assert "out of resource: shared memory" in said
    assert "131072 of 65536 B" in said
