"""The Ascend adapter: what it says where nothing is installed, and what it finds where triton-ascend is."""

from __future__ import annotations

import importlib.util
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

import pytest

from portability import environments
from portability.backend import Launch, check_launch, look_up_blocks, read_blocks
from portability.backends import _ascend_hivm as hivm
from portability.backends import _ascend_lowering as lowering
from portability.backends.ascend import Ascend
from portability.catalogue import Catalogue, from_text
from portability.device import NotHereError
from portability.kernel import Blocks
from portability.model import Cell, Evidence, Observation, Outcome
from portability.pool import Runner

TARGET = "npu:Ascend910B3"
CASES = Path(__file__).parent / "faulty" / "ascend_cases.py"
LIMITS = Ascend().limits_of(TARGET)


def test_without_triton_ascend_it_is_unavailable_and_says_how_to_get_it() -> None:
    (target,) = Ascend().status()
    assert (target.id, target.evidence) == (TARGET, Evidence.NONE)
    assert target.remedy == "portability env create ascend"


def test_preparing_stock_triton_changes_nothing() -> None:
    driver = pytest.importorskip("triton").runtime.driver
    before = driver._active
    Ascend().prepare()
    assert driver._active is before


@pytest.mark.parametrize(
    ("codes", "runs", "raised"),
    [
        ([-11, 0], 2, False),
        ([-6, -11, 0], 3, False),
        ([-6] * 9, lowering.ATTEMPTS, True),  # what is wrong with a kernel ends the compiler each time
        ([1, 0], 1, True),  # the compiler's own word
    ],
)
def test_a_stage_whose_program_a_signal_ended_is_run_again(codes: list[int], runs: int, raised: bool) -> None:
    left, ran = iter(codes), []

    def stage() -> str:
        ran.append(code := next(left))
        if code:
            raise subprocess.CalledProcessError(code, "triton-adapter-opt")
        return "linalg"

    if raised:
        with pytest.raises(subprocess.CalledProcessError):
            lowering.again_if_killed(stage)
    else:
        assert lowering.again_if_killed(stage) == "linalg"
    assert len(ran) == runs


@pytest.mark.parametrize(
    ("grid", "codes"),
    [((65535,), []), ((256, 256), ["grid-total"]), ((0,), ["grid-empty"]), ((7, 0, 2), ["grid-empty"])],
)
def test_grids_are_counted_over_all_axes(grid: tuple[int, ...], codes: list[str]) -> None:
    assert [p.code for p in check_launch(LIMITS, Launch("kernel", grid=grid))] == codes


def test_an_a2_in_no_list_has_the_limits_of_the_listed_one() -> None:
    assert Ascend().limits_of("npu:Ascend910B4") == LIMITS


def test_the_memories_of_an_unknown_core_are_not_guessed() -> None:
    assert not Ascend().limits_of("npu:Ascend310P3").buffers


# --------------------------------------------------------------------------------------------- devices


@pytest.fixture
def torch_npu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Install a torch and a torch_npu of the given Python text, for the process that asks for devices."""

    def install(text: str) -> None:
        (tmp_path / "torch_npu.py").write_text("")
        (tmp_path / "torch.py").write_text(text)
        monkeypatch.setenv("PYTHONPATH", str(tmp_path))
        monkeypatch.syspath_prepend(str(tmp_path))
        importlib.invalidate_caches()

    return install


TWO = """
class Properties:
    name, total_memory = "Ascend910B4", 2**36
class npu:
    device_count = staticmethod(lambda: 2)
    get_device_properties = staticmethod(lambda i: Properties)
"""


def test_an_npu_in_no_list_is_a_target_of_its_own(torch_npu: Callable[[str], None]) -> None:
    torch_npu(TWO)
    found = Ascend().devices()
    assert [(d.target, d.index, d.memory) for d in found] == [("npu:Ascend910B4", i, 2**36) for i in (0, 1)]
    assert Ascend().device_target(1) == "npu:Ascend910B4"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("raise OSError('libascendcl.so: no such file')", "libascendcl.so: no such file"),
        ("class npu: device_count = staticmethod(lambda: 0)", "shows no NPU"),
    ],
)
def test_a_torch_npu_without_an_npu_says_why(torch_npu: Callable[[str], None], text: str, why: str) -> None:
    torch_npu(text)
    with pytest.raises(NotHereError, match=why):
        Ascend().devices()


def test_without_torch_npu_no_device_is_looked_for() -> None:
    with pytest.raises(LookupError, match="no torch_npu"):
        Ascend().device_target(0)


# ----------------------------------------------------------------------------------- AscendNPU IR's answers

CAST = "hivm.hir.pointer_cast({}) : memref<{}, #hivm.address_space<{}>>\n"


def test_planned_memory_ends_with_the_highest_buffer() -> None:
    text = "%c0 = arith.constant 0 : i64\n%c4096 = arith.constant 4096 : i64\n"
    text += "%1 = " + CAST.format("%c0", "1024xf32", "ub") + "%2 = " + CAST.format("%c4096", "2x16xbf16", "ub")
    assert hivm.planned(text) == {"UB": 4096 + 64}


def test_each_copy_of_a_multi_buffered_tile_counts() -> None:
    text = "%a = arith.constant 0 : i64\n%b = arith.constant 8192 : i64\n"
    assert hivm.planned(text + "%1 = " + CAST.format("%a, %b", "64x64xf16", "cbuf")) == {"L1": 8192 + 8192}


@pytest.mark.parametrize(("shape", "size"), [("128x64xf16", 16384), ("8xi1", 8), ("2xindex", 16), ("?x4xf32", 0)])
def test_sizes_of_tiles(shape: str, size: int) -> None:
    assert hivm.size_of(shape) == size


def test_a_missing_hivmc_is_where_the_free_part_ends() -> None:
    said = 'loc("k.mlir":1:1): error: External hivmc run fails, returning module before running external compiler'
    assert hivm._judge(1, said, "module {}") == hivm.Plan("module {}")


def test_an_overflow_is_told_in_bytes() -> None:
    said = "error: cbuf overflow, requires 6291456 bits while 4194304 bits available! (possible reason: …)"
    assert hivm._judge(1, said, "").overflow == ("L1", 786432, 524288)


@pytest.mark.parametrize(
    ("code", "said", "error"),
    [
        (-11, " #0 0x0000 (/usr/bin/bishengir-compile)", "ended by SIGSEGV"),
        (
            -6,
            "note\nLLVM ERROR: PlanMemory Traverse IR Failed! \n #0 0x0000",
            "ended by SIGABRT: PlanMemory Traverse IR Failed!",
        ),
    ],
)
def test_a_killed_compiler_is_named_by_its_signal_and_last_word(code: int, said: str, error: str) -> None:
    assert hivm._judge(code, said, "").error == f"bishengir-compile was {error}"


def test_plans_survive_the_cache() -> None:
    plan = hivm.Plan("", {"UB": 4}, "ub overflow", ("UB", 5, 4))
    assert hivm.from_text(hivm.to_text(plan)) == plan


def test_without_ascendnpu_ir_the_largest_loaded_tile_is_an_estimate() -> None:
    linalg = "%alloc = memref.alloc() : memref<65536xf32>\n%alloc_1 = memref.alloc() : memref<16xf32>\n"
    assert lowering.estimate(linalg, "aiv", LIMITS) == (262144, 196608, "UB")
    assert lowering.estimate(linalg, "mix", LIMITS) == (262144, 524288, "L1")


# --------------------------------------------------------------------------------------- with triton-ascend

needs_environment = pytest.mark.skipif("ascend" not in environments.installed(), reason="portability env create ascend")


@pytest.fixture(scope="module")
def runner(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runner]:
    """A runner of the Ascend environment that knows the cases of `ascend_cases`, with an empty cache."""
    folder = tmp_path_factory.mktemp("ascend")
    (folder / "ascend_cases.py").write_text(CASES.read_text())
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("PORTABILITY_CACHE", str(folder / "cache"))
        made = Runner(environments.get("ascend"), folder, kernels=["ascend_cases"])
        yield made
        made.close()


@pytest.fixture(scope="module")
def found(runner: Runner) -> Catalogue:
    return from_text(runner.ask({"op": "catalogue", "ask": ["ascend"]}, 120)["catalogue"])


@pytest.fixture(scope="module")
def observe(runner: Runner, found: Catalogue) -> Callable[..., Observation]:
    (target,) = found.targets

    def run(
        kernel: str, dtype: str = "float32", sample: str = "one", blocks: Mapping[str, int] = MappingProxyType({})
    ) -> Observation:
        cell = Cell(kernel, dtype, sample, target.id, "ascend")
        return runner.run({"blocks": dict(blocks), "options": {}}, cell, target, 120)

    return run


def line_of(seen: Observation) -> str:
    file, _, number = seen.line.rpartition(":")
    assert file.endswith("ascend_cases.py")
    return CASES.read_text().splitlines()[int(number) - 1]


@needs_environment
def test_a_kernel_is_lowered_with_the_memory_that_it_would_use(observe: Callable[..., Observation]) -> None:
    seen = observe("fits")
    assert (seen.outcome, seen.evidence) == (Outcome.PASS, Evidence.LOWERED)
    (resources,) = seen.resources
    assert (resources.shared, resources.shared_limit) == (
        2 * 1024 * 4,
        196608,
    )  # a tile of the input and one of the output
    assert resources.matrix == "scalar"


@needs_environment
def test_a_matrix_product_takes_the_cube_core(observe: Callable[..., Observation]) -> None:
    (resources,) = observe("product").resources
    assert resources.matrix == "cube"
    assert resources.buffers["L0C"] == 64 * 64 * 4


@needs_environment
def test_a_block_beyond_the_unified_buffer_is_out_of_resources(observe: Callable[..., Observation]) -> None:
    seen = observe("unified_buffer")
    assert seen.outcome is Outcome.OUT_OF_RESOURCES
    assert "UB" in seen.detail
    assert "Hardware limit: 196608" in seen.detail


@needs_environment
def test_a_grid_beyond_the_npus_is_out_of_resources(observe: Callable[..., Observation]) -> None:
    seen = observe("too_many_programs")
    assert seen.outcome is Outcome.OUT_OF_RESOURCES
    assert "100000 programs, at most 65535" in seen.detail


@needs_environment
def test_a_grid_of_no_programs_is_a_launch_error(observe: Callable[..., Observation]) -> None:
    assert observe("no_programs").outcome is Outcome.LAUNCH_ERROR


@needs_environment
def test_an_unclaimed_dtype_is_refused_at_its_line(observe: Callable[..., Observation]) -> None:
    assert not Ascend().claims(TARGET, "float64")
    seen = observe("fits", "float64")
    assert seen.outcome is Outcome.COMPILE_ERROR
    assert "tl.load" in line_of(seen)


@needs_environment
def test_every_configuration_of_a_tuned_kernel_is_lowered(observe: Callable[..., Observation]) -> None:
    seen = observe("tuned")
    assert seen.outcome is Outcome.PASS
    assert seen.launches == 3  # two configurations, and the better one again
    assert [w.code for w in seen.warnings] == ["config-fails"]  # the larger one
    assert "BLOCK: 65536" in seen.warnings[0].message


@needs_environment
def test_what_the_last_stage_refuses_is_told_by_its_name(observe: Callable[..., Observation]) -> None:
    seen = observe("sort_of_integers", "int32")
    assert seen.outcome is Outcome.COMPILE_ERROR
    assert "hivm: 'hivm.hir.vsort' op failed" in seen.detail


@needs_environment
def test_a_refusal_by_ttadapter_names_the_line_and_no_path(observe: Callable[..., Observation]) -> None:
    """A negative constant offset under a mask is right on every GPU."""
    seen = observe("negative_offset")
    assert seen.outcome is Outcome.COMPILE_ERROR
    assert "ttadapter: error: expected offsets to be non-negative" in seen.detail
    assert "/" not in seen.detail
    assert "ptr - 1" in line_of(seen)


@needs_environment
def test_assembly_that_nothing_reads_is_warned_of(observe: Callable[..., Observation]) -> None:
    seen = observe("assembly")
    assert seen.outcome is Outcome.PASS
    assert [w.code for w in seen.warnings] == ["inline-assembly"]


@needs_environment
def test_an_unknown_launch_option_is_a_launch_error(observe: Callable[..., Observation]) -> None:
    seen = observe("unknown_option")
    assert seen.outcome is Outcome.LAUNCH_ERROR
    assert "waves_per_eu was specified but unrecognised" in seen.detail


@needs_environment
def test_with_triton_ascend_it_lowers_and_says_how_far(found: Catalogue) -> None:
    (target,) = found.targets
    assert target.evidence is Evidence.LOWERED
    assert "frontend, ttadapter and hivm, short of npubin" in target.why
    assert target.versions["triton"] == "3.2.0"


@needs_environment
@pytest.mark.parametrize("kernel", sorted(read_blocks(Ascend().block_table())))
def test_blocks_of_the_table_fit(kernel: str, found: Catalogue, observe: Callable[..., Observation]) -> None:
    case = found.case(kernel)
    sample = next(s.name for s in case.samples if s.quick)
    for dtype in (d for d in case.dtypes if Ascend().claims(TARGET, d)):
        blocks = look_up_blocks(Ascend(), kernel, TARGET, dtype, Blocks(case.blocks)).blocks
        assert observe(kernel, dtype, sample, blocks).outcome is Outcome.PASS, dtype


@needs_environment
def test_a_warm_cache_gives_the_same_answers(observe: Callable[..., Observation]) -> None:
    for kernel in ("fits", "unified_buffer"):
        first, second = observe(kernel), observe(kernel)
        assert (first.outcome, first.detail, first.resources) == (second.outcome, second.detail, second.resources)
