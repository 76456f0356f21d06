"""Porting: the verdict, what is read from assembly, which kernel is meant, and whole ports of a small project."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from portability.backend import discover
from portability.checks.model import Fault, Seen
from portability.facts import Facts
from portability.model import CaseInfo, Cell, Evidence, Observation, Outcome, Resources, SampleInfo, Target
from portability.porting import advice, reading
from portability.porting.ends import End
from portability.porting.model import Attempt, Choice, Entry, Report, Verdict
from portability.porting.recorded import _Mover
from portability.porting.rendering import render
from portability.porting.search import neighbours, space_of
from portability.porting.session import Request
from portability.porting.subject import find
from portability.porting.verdict import judged
from portability.record.cases import Launched
from portability.record.model import Call, Recording

from .conftest import Project

HERE = Target("cuda:90", "cuda", "H100", evidence=Evidence.COMPILED, why="no device")
THERE = Target("hip:gfx942", "rocm", "MI300X", evidence=Evidence.COMPILED, why="no device", remedy="a machine with one")
FITS = Attempt("float32", "257", {"BLOCK": 64}, "case default", Outcome.PASS, Outcome.PASS, Evidence.COMPILED)
TOO_LARGE = replace(FITS, outcome=Outcome.OUT_OF_RESOURCES, detail="out of resource: shared memory", line="k.py:3")
SMALLER = Choice(
    ("float32",), {"BLOCK": 32}, entries=(Entry("hip:gfx942", '[k."hip:gfx942"]\nBLOCK = 32\nfound = "search"\n'),)
)
NOTHING = Choice(("float32",), why="k.py:3: float32: no such instruction")


def report(*attempts: Attempt, choices: tuple[Choice, ...] = (), lint: tuple[Fault, ...] = ()) -> Report:
    return judged(Report("k", HERE, THERE, attempts=attempts, choices=choices, lint=lint, file="k.py"))


# -------------------------------------------------------------------------------------------------- the verdict


def test_what_passes_everywhere_moves_as_it_is() -> None:
    made = report(FITS)
    assert (made.verdict, made.exit_code) == (Verdict.AS_IT_IS, 0)


def test_what_fits_with_other_blocks_needs_them() -> None:
    made = report(FITS, replace(TOO_LARGE, dtype="float16"), choices=(SMALLER,))
    assert (made.verdict, made.exit_code) == (Verdict.BLOCKS, 1)


def test_what_no_blocks_mend_needs_changes() -> None:
    made = report(TOO_LARGE, choices=(NOTHING,))
    assert (made.verdict, made.exit_code) == (Verdict.CHANGES, 1)
    assert made.changes == ("k.py:3: float32: no such instruction",)


def test_a_dtype_that_the_destination_does_not_claim_is_named_and_decides_nothing() -> None:
    float8 = replace(TOO_LARGE, dtype="float8_e4m3fn", claimed=False)
    made = judged(Report("k", HERE, THERE, attempts=(FITS, float8), unclaimed=("float8_e4m3fn",)))
    assert made.verdict is Verdict.AS_IT_IS
    assert "without float8_e4m3fn" in render([made])


def test_a_kernel_without_a_claimed_dtype_needs_changes() -> None:
    made = judged(Report("k", HERE, THERE, attempts=(replace(TOO_LARGE, claimed=False),), unclaimed=("float32",)))
    assert made.verdict is Verdict.CHANGES


def test_what_fails_on_both_is_no_matter_of_moving_unless_nothing_else_is_left() -> None:
    both = replace(TOO_LARGE, dtype="int8", source=Outcome.COMPILE_ERROR, outcome=Outcome.COMPILE_ERROR)
    assert report(FITS, both).verdict is Verdict.AS_IT_IS
    alone = report(both)
    assert alone.verdict is Verdict.CHANGES
    assert "on the source too" in alone.changes[0]


def test_a_static_finding_that_stops_it_there_alone_needs_a_change() -> None:
    device = Fault("TP101", "hard-coded-device", Seen.SOURCE, "k.py:7", ("hip:gfx942",))
    assert report(FITS, lint=(device,)).verdict is Verdict.CHANGES
    assert report(FITS, lint=(replace(device, everywhere=True),)).verdict is Verdict.AS_IT_IS
    assert report(FITS, lint=(replace(device, code="TP401"),)).verdict is Verdict.AS_IT_IS


def test_a_finding_that_a_compiler_would_have_made_counts_where_one_made_it() -> None:
    assembly = Fault("TP104", "inline-assembly: PTX", Seen.SOURCE, "k.py:7", ("hip:gfx942",))
    assert report(FITS, lint=(assembly,)).verdict is Verdict.AS_IT_IS
    refused = report(replace(TOO_LARGE, outcome=Outcome.COMPILE_ERROR), choices=(NOTHING,), lint=(assembly,))
    assert refused.changes[1] == "k.py:7: inline-assembly: PTX (TP104)"


def test_spills_that_no_other_blocks_avoid_do_not_keep_it_from_moving() -> None:
    spilling = replace(FITS, spills=512)
    assert report(spilling, choices=(SMALLER,)).verdict is Verdict.BLOCKS
    assert report(spilling).verdict is Verdict.AS_IT_IS


# ------------------------------------------------------------------------------------------------------- reading


def test_layouts_of_products_and_of_shared_memory_are_said_in_words() -> None:
    ttgir = """
#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [8, 8], warpsPerCTA = [8, 1], order = [1, 0]}>
#mma = #ttg.amd_mfma<{version = 3, warpsPerCTA = [4, 2], instrShape = [32, 32, 8], isTransposed = true}>
#shared = #ttg.swizzled_shared<{vec = 4, perPhase = 1, maxPhase = 16, order = [1, 0]}>
#smem = #ttg.shared_memory
#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 256, colStride = 1>
"""
    assert reading.layouts(ttgir) == (
        "amd_mfma version 3 32x32x8 over 4x2 warps", "swizzled_shared", "tensor_memory_encoding 128x256",
    )  # fmt: skip


def test_what_flushes_denormals_is_read_from_the_assembly() -> None:
    assert reading.flushes("\tex2.approx.ftz.f32 \t%f1, %f2;\n\tadd.f32 %f3, %f1, %f1;", "") == ("ex2.approx.ftz.f32",)
    assert reading.flushes("", ".amdhsa_float_denorm_mode_32 3") == ()
    assert reading.flushes("", ".amdhsa_float_denorm_mode_32 0") == ("float_denorm_mode_32 0",)


@pytest.mark.parametrize(
    ("outcome", "detail", "words"),
    [
        (Outcome.OUT_OF_RESOURCES, "out of resource: shared memory, Required: 98304", "fewer stages"),
        (Outcome.OUT_OF_RESOURCES, "out of resource: threads, Required: 2048", "fewer warps"),
        (Outcome.COMPILE_ERROR, "error: could not allocate output register for constraint 'f'", "branch"),
        (Outcome.COMPILE_ERROR, "input_precision must be one of ('ieee', 'bf16x3')", "ieee"),
        (Outcome.LAUNCH_ERROR, "KeyError: 'Keyword argument waves_per_eu was specified but unrecognised'", "knows it"),
        (
            Outcome.COMPILE_ERROR,
            "'arith.extf' op operand #0 must be floating-point-like, but got 'tensor<64x64xi8, #ttg.dot_op<{}>>'",
            "cast its operands to float16",
        ),
        (Outcome.COMPILE_ERROR, "KeyError: (triton.language.float16): no overload takes these types", "to float32"),
        (Outcome.CRASH, "the process was ended by SIGABRT", "smaller tiles first"),
        (Outcome.WRONG, "output[3] is 1 and should be 2", ""),
    ],
)
def test_a_refusal_comes_with_what_to_change(outcome: Outcome, detail: str, words: str) -> None:
    found = advice.advise(outcome, detail)
    assert words in found if words else not found


# -------------------------------------------------------------------------------------------------- the search


def case(**more: object) -> CaseInfo:
    info = CaseInfo("k", ("float32",), (SampleInfo("257", quick=True),), blocks={"BLOCK": 256, "num_warps": 4})
    return replace(info, **more)  # type: ignore[arg-type]


def test_the_nearest_configurations_are_tried_first_and_smaller_ones_before_larger() -> None:
    space = {"BLOCK": (64, 128, 256, 512), "num_warps": (4, 8)}
    made = neighbours(space, {"BLOCK": 256, "num_warps": 4}, {"BLOCK": 256, "num_warps": 4, "FIXED": 1}, 8)
    assert made[0] == {"BLOCK": 256, "num_warps": 4, "FIXED": 1}
    assert made[1] == {"BLOCK": 128, "num_warps": 4, "FIXED": 1}
    assert len(made) <= 8
    assert all(m["FIXED"] == 1 for m in made)


def test_a_case_without_a_space_is_searched_around_its_own_blocks() -> None:
    assert space_of(case()) == {"BLOCK": (64, 128, 256, 512), "num_warps": (1, 2, 4, 8)}
    assert space_of(case(space={"BLOCK": (1, 2)})) == {"BLOCK": (1, 2)}


# ---------------------------------------------------------------------------------------------- which kernel is meant

CASES = "from portability.kernel import KernelCase\nCASE = KernelCase(name='mine')\n"


def test_a_name_is_of_the_nearest_project(tmp_path: Path) -> None:
    (tmp_path / "matrix.toml").write_text('[matrix]\nkernels = ["mine"]\n')
    (tmp_path / "below").mkdir()
    found = find("mine", None, tmp_path / "below")
    assert (found.name, found.root, found.matrix.kernels) == ("mine", tmp_path, ("mine",))


def test_a_file_of_cases_is_a_project_of_its_own_where_no_matrix_names_it(tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").touch()
    (tmp_path / "package" / "mine.py").write_text(CASES)
    found = find(f"{tmp_path}/package/mine.py:other", None, tmp_path)
    assert (found.root, found.matrix.kernels, found.name) == (tmp_path, ("package.mine",), "other")


def test_a_file_that_a_matrix_names_is_not_imported_twice(tmp_path: Path) -> None:
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels" / "mine.py").write_text(CASES)
    (tmp_path / "matrix.toml").write_text('[matrix]\nkernels = ["kernels.mine"]\n')
    assert find(f"{tmp_path}/kernels/mine.py", None, tmp_path).matrix.kernels == ("kernels.mine",)


def test_a_file_without_cases_launches_its_kernels_itself(tmp_path: Path) -> None:
    (tmp_path / "loose.py").write_text("def run(dev): ...\n")
    assert find(f"{tmp_path}/loose.py", None, tmp_path).loose


@pytest.mark.parametrize(
    ("kernel", "words"),
    [
        ("absent.py", "no such file"),
        ("broken.py", "cannot be read as Python"),
        ("loose.py:k", "no kernel case 'k'"),
    ],
)
def test_a_file_that_is_none_is_named(tmp_path: Path, kernel: str, words: str) -> None:
    (tmp_path / "broken.py").write_text("def (")
    (tmp_path / "loose.py").write_text("def run(dev): ...\n")
    with pytest.raises(ValueError, match=words):
        find(f"{tmp_path}/{kernel}", None, tmp_path)


# ----------------------------------------------------------------------------------------------------- rendering


def test_text_and_markdown_say_the_four_steps_and_end_in_what_to_do() -> None:
    made = report(TOO_LARGE, choices=(SMALLER,))
    text = render([made])
    steps = [text.index(f"\n{n}. ") for n in range(1, 5)]
    assert steps == sorted(steps)
    assert text.rstrip().endswith("float32: BLOCK=32")
    markdown = render([made], "markdown")
    assert "```toml\n[k.\"hip:gfx942\"]" in markdown  # fmt: skip
    assert "**Verdict: needs these blocks, by code that was compiled**" in markdown


def test_a_difference_of_the_source_alone_is_told_with_its_target() -> None:
    """Whoever reads "there" would take it for the destination."""
    faults = [Fault("dot-imprecise", "14 bits there", Seen.ASSEMBLY, "k.py:3", (t,)) for t in ("cuda:90", "hip:gfx942")]
    lines = render([replace(report(FITS), silent=tuple(faults))]).splitlines()
    said = [line.strip() for line in lines if "14 bits" in line]
    assert [line.endswith("(on cuda:90)") for line in said] == [True, False]


def test_json_holds_the_verdict_the_exit_code_and_everything_else() -> None:
    data = json.loads(render([report(TOO_LARGE, choices=(SMALLER,))], "json"))
    kernel = data["kernels"][0]
    assert (kernel["verdict"], kernel["exit_code"]) == ("needs these blocks", 1)
    assert kernel["choices"][0]["entries"][0]["selector"] == "hip:gfx942"
    assert kernel["attempts"][0]["detail"] == "out of resource: shared memory"


def test_a_format_that_is_none_is_refused_with_the_choices() -> None:
    with pytest.raises(ValueError, match="text, markdown, json"):
        render([], "html")


# -------------------------------------------------------------------------------------------------- whole ports

KERNEL = '''
"""Doubling: out = 2 x. Its 32 warps are 1,024 threads where a warp is 32 lanes, and 2,048 where it is 64."""
import torch, triton, triton.language as tl
from portability.kernel import Blocks, KernelCase, Sample, cdiv

@triton.jit
def double_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, 2 * tl.load(x_ptr + at, mask=at < n), mask=at < n)

@triton.jit
def reciprocal_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=1.0)
    y = tl.inline_asm_elementwise("rcp.approx.ftz.f32 $0, $1;", "=f,f", [x], tl.float32, True, 1)
    tl.store(out_ptr + at, y, mask=at < n)

def launch(kernel, x, blocks):
    out = torch.empty_like(x)
    kernel[(cdiv(x.numel(), blocks["BLOCK"]),)](x, out, x.numel(), **blocks)
    return out

def double(x, blocks=None):
    return launch(double_kernel, x, blocks)

def reciprocal(x, blocks=None):
    return launch(reciprocal_kernel, x, blocks)

SAMPLES = [Sample("257", lambda d: (d.normal(257),), quick=True), Sample("4096", lambda d: (d.normal(4096),))]
WIDE = Blocks(BLOCK=1024, num_warps=32)
CASES = [
    KernelCase(name="double", operator=double, reference=lambda x: 2 * x, samples=SAMPLES, dtypes=["float32"],
               blocks=WIDE, space={"num_warps": (4, 8, 16, 32)}),
    KernelCase(name="reciprocal", operator=reciprocal, reference=lambda x: 1 / x, samples=SAMPLES, dtypes=["float32"],
               blocks=Blocks(BLOCK=256, num_warps=4)),
]
'''  # fmt: skip
BACKEND = '''
"""gfx942 under another name, so that its block table is the test's own."""
from portability.backends.rocm import CDNA3, Rocm

class Mine(Rocm):
    name = "mine"
    targets = ("mine:gfx942",)
    titles = {}
    families = {}
    limits = {"*": CDNA3}
'''


@pytest.fixture
def small(project: Callable[[str], Project]) -> Project:
    made = project('[matrix]\nkernels = ["doubling"]\nbackends = ["mine"]\n')
    (made.folder / "doubling.py").write_text(KERNEL)
    (made.folder / "mine.py").write_text(BACKEND)
    return made


@pytest.mark.slow
def test_blocks_that_fit_are_found_checked_and_written_into_the_adapters_table(small: Project) -> None:
    """And are then what the table gives."""
    words = ("port", "double", "--from", "cuda:90", "--to", "mine:gfx942", "--most", "4", "--no-names")
    done = small.portability(*words, "--write")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "Verdict: needs these blocks, by code that was compiled" in done.stdout
    assert "right on float32 257" in done.stdout
    assert "a warp is 32 lanes on cuda:90 and 64 on mine:gfx942: 32 warps are 1024 and 2048 threads" in done.stdout
    table = (small.folder / "mine.toml").read_text()
    assert '[double."mine:gfx942"]' in table
    assert "num_warps = 32" not in table
    again = small.portability(*words, "--write", "--format", "json")
    choice = json.loads(again.stdout)["kernels"][0]["choices"][0]
    assert choice["blocks_from"] == 'mine.toml [double."mine:gfx942"]'
    assert "entries" not in choice
    assert (small.folder / "mine.toml").read_text() == table


@pytest.mark.slow
def test_what_no_blocks_mend_is_named_with_its_line(small: Project) -> None:
    """By a file of another project, from outside of it."""
    path = str(small.folder / "doubling.py")
    done = small.portability("port", f"{path}:reciprocal", "--from", "cuda:90", "--to", "hip:gfx942", "--most", "2")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "Verdict: needs these changes" in done.stdout
    assert "doubling.py:15: " in done.stdout
    assert "a branch on a tl.constexpr for each vendor" in done.stdout
    assert "TP104" in done.stdout


@pytest.mark.slow
def test_a_loose_file_is_held_against_both_targets(small: Project) -> None:
    (small.folder / "loose.py").write_text(
        KERNEL.partition("SAMPLES")[0]
        + "def run(dev):\n    x = torch.ones(257, device=dev)\n    return launch(double_kernel, x, WIDE)\n"
        + "WIDE = dict(BLOCK=1024, num_warps=32)\n"
        + "def ref():\n    return 2 * torch.ones(257)\n"
    )
    there = small.portability("port", "loose.py", "--from", "cuda:90", "--to", "hip:gfx942")
    assert there.returncode == 1, there.stdout + there.stderr
    assert "threads" in there.stdout
    assert "fewer warps" in there.stdout
    refused = small.portability("port", "loose.py", "--from", "cuda:90", "--to", "hip:gfx942", "--write")
    assert refused.returncode == 2
    assert "names its blocks itself" in refused.stderr


@pytest.mark.slow
def test_an_architecture_in_no_list_is_a_destination_for_every_step(tmp_path: Path) -> None:
    """It has no baseline, so that names of the language are tried on it."""
    done = Project(tmp_path).portability(
        "port", "vector_add", "--from", "cuda:90", "--to", "cuda:103", "--quick", "--most", "0"
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "names of the language that it uses: " in done.stdout
    assert "Verdict: moves as it is" in done.stdout


PROGRAM = """
import torch, triton, triton.language as tl

@triton.jit
def product_kernel(a, b, c, K, BLOCK: tl.constexpr, BLOCK_K: tl.constexpr):
    i, k = tl.arange(0, BLOCK), tl.arange(0, BLOCK_K)
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for start in range(0, K, BLOCK_K):
        x = tl.load(a + i[:, None] * K + (start + k)[None, :])
        total += tl.dot(x, tl.load(b + (start + k)[:, None] * BLOCK + i[None, :]))
    tl.store(c + i[:, None] * BLOCK + i[None, :], total)

if __name__ == "__main__":
    a, b = (torch.ones(s, device="cuda", dtype=torch.float16) for s in ((128, 512), (512, 128)))
    c = torch.empty(128, 128, device="cuda")
    product_kernel[(1,)](a, b, c, 512, BLOCK=128, BLOCK_K=128, num_warps=8, num_stages=3)
"""


@pytest.mark.slow
def test_a_recorded_launch_is_moved_with_smaller_blocks_where_its_own_do_not_fit(small: Project) -> None:
    (small.folder / "program.py").write_text(PROGRAM)
    recorded = small.portability("record", "-o", "launches.json", "--target", "cuda:90", "--", "program.py")
    assert recorded.returncode == 0, recorded.stdout + recorded.stderr
    words = ("port", "launches.json:*product*", "--from", "cuda:90", "--to", "hip:gfx942", "--most", "6")
    done = small.portability(*words, "--format", "json")
    assert done.returncode == 1, done.stdout + done.stderr
    kernel = json.loads(done.stdout)["kernels"][0]
    assert kernel["verdict"] == "needs these blocks", kernel
    assert "shared memory, Required: 131072, Hardware limit: 65536" in kernel["attempts"][0]["detail"]
    assert kernel["choices"][0]["blocks"]["BLOCK"] <= 128
    assert "gives what the recorded blocks give" in kernel["choices"][0]["interpreted"]
    assert "wgmma f16 -> v_mfma" in kernel["layouts"][0]


def test_a_tuner_that_has_a_configuration_without_spills_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes that one; where none is left a launch that spills still works, and needs no change."""
    launch = Launched("p:k", "p", tuple(Call("k", "p", "k.py", 1, "", config=c) for c in "ab"))
    cell = Cell("p:k", "float32", "1", "hip:gfx942")
    spilling, fitting = (
        Observation(cell, Evidence.COMPILED, Outcome.PASS, resources=(Resources("k", spills=s),)) for s in (4096, 0)
    )
    here, there = (End(t, discover()[t.backend], Facts({})) for t in (HERE, THERE))
    for found, moves in ((fitting, True), (spilling, False)):
        mover = _Mover(cast(Any, None), Recording("cuda:90"), here, there, Request("cuda:90", "hip:gfx942", most=4))
        monkeypatch.setattr(mover, "_run", lambda *_, found=found: found)
        attempt = mover._tuned(launch, None, mover._attempt(launch, None, spilling))
        assert attempt.moves is moves
        if not moves:
            assert mover._choice(launch, attempt).why == ""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--from", "cuda:9", "--to", "hip:gfx942"), "--from: 'cuda:9' is no target here; nearest"),
        (("--from", "cuda:90", "--to", "cuda:90"), "nothing is moved"),
        (("--from", "cuda:90", "--to", "hip:gfx942", "--dtype", "int8"), "double has no 'int8'"),
    ],
)
def test_names_that_are_nothing_are_refused_with_the_choices(small: Project, words: tuple[str, ...], said: str) -> None:
    done = small.portability("port", "double", *words)
    assert done.returncode == 2
    assert said in done.stderr


def test_a_count_below_zero_is_refused(tmp_path: Path) -> None:
    from portability.cli import main

    assert main(["port", "k", "--from", "a", "--to", "b", "--most", "-1"]) == 2
