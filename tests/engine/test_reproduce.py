"""Files that show a failure without this package: what is made smaller, what is written, and what the file shows."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from portability.cli import main
from portability.model import Cell, Evidence, Observation, Outcome
from portability.record.cases import launched
from portability.record.model import read
from portability.reproducer.shrink import Attempt, Known, Shrinker, signature

from .conftest import Project

MATRIX = '[matrix]\nkernels = ["faulty.cases", "faulty.reproduced"]\n'
CELL = Cell("k", "float32", "s", "interpreter")


def observed(outcome: Outcome, detail: str = "", line: str = "") -> Observation:
    return Observation(CELL, Evidence.INTERPRETED, outcome, detail=detail, line=line)


# ---------------------------------------------------------------------------------------------- what must stay


def test_numbers_in_the_words_may_differ() -> None:
    one = observed(Outcome.OUT_OF_BOUNDS, "k: stores 28 elements past x, program (3, 0, 0)", "k.py:7")
    two = observed(Outcome.OUT_OF_BOUNDS, "k: stores 1 elements past x, program (0, 0, 0)", "k.py:7")
    assert signature(one) == signature(two)


def test_a_wrong_element_may_be_another_one() -> None:
    one = observed(Outcome.WRONG, "output[3, 7] is 1.5, expected 2; 4 of 90 elements are wrong")
    assert signature(one) == signature(
        observed(Outcome.WRONG, "output[0] is nan, expected -1; 1 of 1 elements are wrong")
    )
    assert signature(one) != signature(observed(Outcome.WRONG, "input 0 was written by the operator"))


@pytest.mark.parametrize(
    "other",
    [
        observed(Outcome.WRONG, "k: stores", "k.py:7"),
        observed(Outcome.OUT_OF_BOUNDS, "k: stores", "k.py:8"),
        observed(Outcome.OUT_OF_BOUNDS, "k: loads", "k.py:7"),
    ],
)
def test_another_outcome_line_or_wording_is_another_failure(other: Observation) -> None:
    assert signature(other) != signature(observed(Outcome.OUT_OF_BOUNDS, "k: stores", "k.py:7"))


# -------------------------------------------------------------------------------------------------- shrinking

START = Attempt("float16", "large", {"BLOCK": 128, "num_warps": 8})
KNOWN = Known(
    ("bfloat16", "float16", "float32"), {"large": [[257, 33]], "small": [[129, 2]], "larger": [[999, 9]]}, True
)
FAILED = observed(Outcome.WRONG, "output[0] is 1, expected 2")


def smallest(fails: Callable[[Attempt], bool], known: Known = KNOWN, budget: float = 60.0) -> Attempt:
    def run(attempt: Attempt) -> Observation:
        return FAILED if fails(attempt) else observed(Outcome.PASS)

    return Shrinker(run, signature(FAILED), budget).smallest(START, known)


def test_sizes_shrink_to_one_past_the_smallest_block_that_still_fails() -> None:
    """Wrong where a row is longer than a block, as a kernel is that takes one block of it alone."""

    def fails(attempt: Attempt) -> bool:
        return attempt.sample == "large" and attempt.size(257) > attempt.blocks["BLOCK"]

    found = smallest(fails)
    assert (found.size(257), found.size(33), found.blocks["BLOCK"]) == (17, 1, 16)
    assert found.blocks["num_warps"] == 8  # no size


def test_the_plainest_dtype_and_the_smaller_sample_are_taken_where_they_fail_too() -> None:
    found = smallest(lambda a: a.sample != "larger")
    assert (found.dtype, found.sample, found.values) == ("float32", "small", "whole")


def test_what_fails_at_its_own_dtype_and_values_alone_keeps_them() -> None:
    found = smallest(lambda a: a.dtype == "float16" and a.values == "own")
    assert (found.dtype, found.values) == ("float16", "own")


def test_where_nothing_is_computed_sizes_and_values_stay() -> None:
    """What is compiled depends on sizes by a multiple of 16 and the value 1 alone."""
    found = smallest(lambda _: True, Known(KNOWN.dtypes, KNOWN.shapes, floating=False))
    assert (found.sizes, found.values, found.dtype) == ({}, "own", "float32")
    assert found.blocks["BLOCK"] == 16


def test_without_time_it_stays_as_it_is() -> None:
    assert smallest(lambda _: True, budget=0.0) == START


# ------------------------------------------------------------------------------------------------ changed samples


def changed_input(x: tuple[Any, ...], **change: Any) -> tuple[Any, ...]:
    from portability.kernel import Blocks, Draw, KernelCase, Sample
    from portability.reproducer.change import changed

    case = KernelCase(
        name="changed",
        operator=lambda t: t,
        reference=lambda t: t,
        samples=[Sample("s", lambda _: x)],
        dtypes=["float32"],
    )
    return changed(case, "s", change).samples[0].inputs(Draw(x[0].dtype, Blocks(), 0))


def test_a_smaller_tensor_keeps_its_layout() -> None:
    torch = pytest.importorskip("torch")
    transposed = torch.randn(6, 8).T
    every_other = torch.randn(6, 16)[:, ::2]
    expanded = torch.randn(8).expand(6, 8)
    made = changed_input((transposed, every_other, expanded), sizes={"8": 3})
    assert [tuple(t.shape) for t in made] == [(3, 6), (6, 3), (6, 3)]
    assert [t.stride() for t in made] == [(1, 3), (6, 2), (0, 1)]
    assert torch.equal(made[0], transposed[:3])
    assert torch.equal(made[1], every_other[:, :3])


def test_indices_stay_within_a_dimension_that_became_smaller() -> None:
    torch = pytest.importorskip("torch")
    table, index = torch.randn(8, 2), torch.tensor([7, 1, 3])
    assert changed_input((table, index), sizes={"8": 4})[1].tolist() == [3, 1, 3]


def test_numbers_among_the_inputs_follow_where_it_is_asked_for() -> None:
    torch = pytest.importorskip("torch")
    assert changed_input((torch.randn(8), 8), sizes={"8": 4}, scalars=True)[1] == 4
    assert changed_input((torch.randn(8), 8), sizes={"8": 4})[1] == 8


# ----------------------------------------------------------------------------------------------------- values


@pytest.mark.parametrize(
    "make",
    [
        lambda t: t.tensor([1.5, float("inf"), float("-inf"), -0.25]),
        lambda t: t.tensor(7),
        lambda t: t.zeros(0, 3),
        lambda t: t.arange(12).reshape(3, 4).T,
        lambda t: t.randn(20, 20).to(t.bfloat16),
        lambda t: t.randn(30, 20).to(t.float8_e4m3fn).T,
        lambda t: t.arange(300)[3:].reshape(27, 11),
        lambda t: t.tensor([True, False]),
    ],
)
def test_a_tensor_is_made_again_with_its_values_and_layout(make: Callable[[Any], Any]) -> None:
    torch = pytest.importorskip("torch")
    from portability.reproducer import literals

    tensor = make(torch)
    names: dict[str, Any] = {"torch": torch}
    exec("import base64, zlib" + "".join(literals.HELPERS.values()), names)
    again = eval(literals.tensor(tensor), names)
    assert (again.dtype, again.shape, again.stride()) == (tensor.dtype, tensor.shape, tensor.stride())
    assert again.storage_offset() == tensor.storage_offset()
    raw = [t.contiguous().reshape(-1).view(torch.uint8) for t in (again, tensor)]
    assert torch.equal(*raw)


def test_what_no_text_makes_again_is_refused_by_name() -> None:
    pytest.importorskip("torch")
    from portability.reproducer.literals import UnwritableError, plain

    with pytest.raises(UnwritableError, match="object"):
        plain([1, object()])


# ---------------------------------------------------------------------------------------------------- the file


@pytest.fixture
def faulty(project: Callable[[str], Project], monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project with kernels of its own, in which commands are run."""
    made = project(MATRIX)
    monkeypatch.chdir(made.folder)
    monkeypatch.setenv("PYTHONPATH", str(made.folder))
    return made


def run_alone(file: Path) -> subprocess.CompletedProcess[str]:
    """Run a file where this package cannot be imported."""
    code = "import runpy, sys; sys.modules['portability'] = None; runpy.run_path(sys.argv[1], run_name='__main__')"
    return subprocess.run(
        [sys.executable, "-c", code, str(file)], capture_output=True, text=True, timeout=300, check=False
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("cell", "said", "holds"),
    [
        ("one_block-float16-33x257-interpreter", "1 of 17 elements are wrong", ["BLOCK=16", "def scaled_2(", "0.5"]),
        ("chained-float32-5x7-interpreter", "output 1", ["torch.ops.aten.sum.dim_IntList", "torch.empty_like("]),
        ("beyond-float32-100-interpreter", "ended by SIGSEGV", ["guarded(torch.empty_like(x0))"]),
        ("racing-float32-200-interpreter", "in one order of programs", ["total_kernel[(2,)]"]),
        ("undefined-float32-100-interpreter", "where undefined lanes hold 1", ["undefined_kernel[(1,)]"]),
        ("in_place-float32-64-interpreter", "inputs written: [0]", []),
        ("refused-float32-64-interpreter", "no_such_function", []),
        ("refused-float32-64-cuda:90", "no_such_function", ["GPUTarget('cuda', 90, 32)"]),
        ("assembly-float32-100-hip:gfx942", "could not allocate output register", ["rcp.approx"]),
        ("unknown_option-float32-100-cuda:90", "no_such_option was specified but unrecognised", ["class Driver:"]),
        ("over_limit-float16-64x64x1024-hip:gfx942", "131072 bytes of shared memory", ["constexprs={(3,): 64"]),
    ],
)
def test_the_file_shows_the_failure_without_this_package(
    faulty: Project, cell: str, said: str, holds: Sequence[str]
) -> None:
    file = faulty.folder / "shown.py"
    budget = "120" if cell.startswith("one_block") else "10"  # the others fail however large they are
    assert main(["reproduce", cell, "-o", str(file), "--budget", budget, "--quiet"]) == 0
    text = file.read_text()
    assert all(piece in text for piece in holds), text
    done = run_alone(file)
    assert done.returncode == 1, done.stdout + done.stderr
    assert said in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["right-float32-100-interpreter"], "there is nothing to reproduce"),
        (["nothing-float32-100-cuda:90"], "nothing was launched: the failure is in the operator"),
        (["right-float32-100-interpreter", "--results", "none.jsonl"], "none.jsonl: cannot be read"),
    ],
)
def test_what_cannot_be_reproduced_is_exit_code_2_and_named(
    faulty: Project, words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["reproduce", *words, "-o", "none.py", "--quiet"]) == 2
    assert said in capsys.readouterr().err
    assert not Path("none.py").exists()


RECORDED = """
import torch, triton, triton.language as tl

@triton.jit
def beyond(x, y, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i) + 1)

if __name__ == "__main__":
    x = torch.ones(100, device="cuda")
    beyond[(1,)](x, torch.empty_like(x), BLOCK=128, num_warps=32)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("target", "said", "holds"),
    [
        (
            "hip:gfx942",
            "2048 threads, the device has 1024",
            ["constexprs={(2,): 16}", "GPUTarget('hip', 'gfx942', 64)"],
        ),
        ("interpreter", "ended by SIGSEGV", ["guarded(", "beyond[(1,)]("]),
    ],
)
def test_a_recorded_launch_is_reproduced_from_its_recording(
    project: Callable[[str], Project], target: str, said: str, holds: Sequence[str]
) -> None:
    made = project("")
    (made.folder / "program.py").write_text(RECORDED)
    assert made.portability("record", "-o", "launches.json", "--target", "cuda:90", "--", "program.py").returncode == 0
    (call,) = launched(read(made.folder / "launches.json"))
    cell = f"{call.name}-{call.dtype}-{call.sample}-{target}"
    done = made.portability("reproduce", cell, "--launches", "launches.json", "-o", "shown.py", "--quiet")
    assert done.returncode == 0, done.stdout + done.stderr
    text = (made.folder / "shown.py").read_text()
    assert all(piece in text for piece in holds), text
    alone = run_alone(made.folder / "shown.py")
    assert (alone.returncode, said in alone.stdout) == (1, True), alone.stdout + alone.stderr


DEVICE = """
from portability.backends.interpreter import Interpreter
from portability.model import Evidence, Target


class Device(Interpreter):
    name, targets = "fake", ("fake:1",)

    def status(self):
        return [Target("fake:1", "fake", evidence=Evidence.RAN, device="Fake 1")]
"""


@pytest.mark.slow
def test_what_a_device_computes_wrongly_is_shown_by_running_there(faulty: Project) -> None:
    """The device is one in name alone: its kernels are interpreted, here and in the file."""
    (faulty.folder / "fake_device.py").write_text(DEVICE)
    matrix = MATRIX.replace("[matrix]\n", '[matrix]\nbackends = ["fake_device"]\n')
    (faulty.folder / "matrix.toml").write_text(matrix)
    done = faulty.portability("reproduce", "one_block-float16-33x257-fake:1", "-o", "shown.py", "--budget", "0")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Seen run on Fake 1" in (faulty.folder / "shown.py").read_text()


def test_a_file_for_a_device_differs_from_the_interpreters_in_the_device_alone() -> None:
    """Inputs are moved there, allocations are made there, and Triton compiles."""
    import torch

    from portability.reproducer.change import Change
    from portability.reproducer.trace import Trace, tracing
    from portability.reproducer.values import Execution, text
    from portability.reproducer.ways import WAYS

    x, trace = torch.ones(3), Trace()
    trace.name(x, "x0")
    with tracing(trace):
        made = (torch.zeros(3) + x,)
    files = {
        d: [
            line.partition("  # noqa")[0].strip()
            for line in text(Execution((x,), trace, made, (), Change(), "f", d), WAYS["raises"], "f").splitlines()
        ]
        for d in ("cpu", "cuda")
    }
    moved = next(line for line in files["cuda"] if ".to(DEVICE)" in line)
    assert [line for line in files["cuda"] if line not in files["cpu"]] == ['DEVICE = "cuda"', moved]
    assert any("device=DEVICE" in line for line in files["cuda"])
    assert not any("TRITON_INTERPRET" in line for line in files["cuda"])


# ------------------------------------------------------------------------------------------------ which cell


def test_a_cell_is_found_by_its_id_with_borrowed_blocks_and_environments_too() -> None:
    from portability.catalogue import Catalogue
    from portability.harness import Harness
    from portability.model import CaseInfo, SampleInfo, Target
    from portability.reproducer.session import find

    harness = Harness.__new__(Harness)
    targets = (
        Target("interpreter", "interpreter", evidence=Evidence.INTERPRETED),
        Target("cuda:90", "cuda", evidence=Evidence.COMPILED, environment="triton-3.6"),
    )
    case = CaseInfo("k", ("float32", "float16"), (SampleInfo("s"), SampleInfo("7-nan", dtypes=("float32",))))
    harness._catalogue = Catalogue((case,), targets)
    assert find(harness, "k-float32-7-nan-interpreter").sample == "7-nan"
    assert find(harness, "k-float16-s.as.cuda:90-interpreter").sample == "s.as.cuda:90"
    assert find(harness, "k-float16-s-cuda:90-triton-3.6").environment == "triton-3.6"
    with pytest.raises(ValueError, match="no cell 'k-float16-7-nan-interpreter'; nearest"):
        find(harness, "k-float16-7-nan-interpreter")
    with pytest.raises(ValueError, match=r"no cell 'q-float16-s-interpreter': of its kernel, .*\bk\b"):
        find(harness, "q-float16-s-interpreter")
