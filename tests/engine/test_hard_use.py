"""What a run meets on a machine that is not kind: no room, no right to write, another run, and nothing but crashes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import triton

from portability.backend import Launch, Session
from portability.interpret import SpinTimeout
from portability.model import Outcome
from portability.outcomes import problem_of
from portability.results import read_run

from .conftest import ROOT, Project, by_cell
from .test_isolation import processes

MATRIX = '[matrix]\nkernels = ["faulty.cases"]\n'
CRASHES = 1000
CRASHING = f"""
import os, signal
from portability.kernel import KernelCase, Sample

def crash(x, blocks=None):
    os.kill(os.getpid(), signal.SIGABRT)

SAMPLES = [Sample(str(n), lambda draw, n=n: (draw.normal(n),)) for n in range(1, {CRASHES + 1})]
CASE = KernelCase(name="crashing", operator=crash, reference=abs, samples=SAMPLES, dtypes=["float32"])
"""


@pytest.mark.slow
def test_a_thousand_crashes_in_a_row_leave_nothing(tmp_path: Path) -> None:
    """Each is recorded; no process, no lock and no temporary file is left."""
    (tmp_path / "crashing.py").write_text(CRASHING)
    (tmp_path / "matrix.toml").write_text('[matrix]\nkernels = ["crashing"]\n')
    project = Project(tmp_path)
    run, code, said = project.run("crashing", "--target", "interpreter", "-n", "2", timeout=900)
    assert code == 1, said[-2000:]
    assert Counter(o.outcome for o in run.observations) == {Outcome.CRASH: CRASHES}
    assert all("SIGABRT" in o.detail for o in run.observations)
    assert {n for n in os.listdir(project.temporary) if not n.startswith("pytest-of-")} == set()
    assert [p for p in processes() if str(tmp_path) in _environment(p)] == []
    assert not list(tmp_path.rglob("*.lock"))


@pytest.mark.slow
def test_a_cache_that_cannot_be_written_blames_no_kernel(project: Callable[[str], Project]) -> None:
    """What needs no compiler is run; the others say what to do, and are no compile errors."""
    made, nowhere = project(MATRIX), "/dev/null/cache"
    results = made.folder / "run.jsonl"
    words = ("right", "--target", "interpreter", "--target", "cuda:86", "-n0", "--results", str(results))
    done = made.portability("run", *words, variables={"PORTABILITY_CACHE": nowhere})
    found = by_cell(read_run(results))
    assert done.returncode == 1, done.stdout
    assert found["right", "interpreter"].outcome is Outcome.PASS
    refused = found["right", "cuda:86"]
    assert refused.outcome is Outcome.HARNESS_ERROR
    assert nowhere in refused.detail
    assert "PORTABILITY_CACHE" in refused.detail
    assert "Traceback" not in refused.detail


@pytest.mark.parametrize(
    "error", [OSError(28, "No space left on device"), RuntimeError("ptxas fatal: x.ptx: No space left on device")]
)
def test_a_full_disk_is_no_compile_error(error: Exception) -> None:
    problem = problem_of(error, None, "compile", Path())
    assert problem.outcome is Outcome.HARNESS_ERROR
    assert "No space left on device" in problem.message


def test_a_file_that_an_operator_lacks_is_the_operators_own() -> None:
    """Only what cannot be stored is the machine's."""
    problem = problem_of(FileNotFoundError(2, "No such file", "weights.bin"), None, "run", Path())
    assert "PORTABILITY_CACHE" not in problem.message


def test_what_never_ends_is_a_timeout_at_its_line() -> None:
    problem = problem_of(SpinTimeout("k: still in a loop", "k.py:3"), None, "run", Path())
    assert (problem.outcome, problem.line) == (Outcome.TIMEOUT, "k.py:3")


@pytest.mark.parametrize(
    ("raising", "outcome"),
    [(lambda: dict[str, int]()["BLOCK"], Outcome.LAUNCH_ERROR), (lambda: triton.cdiv("n", 2), Outcome.COMPILE_ERROR)],
    ids=["in a file's own function", "in Triton"],
)
def test_what_a_launch_raises_is_of_the_compiler_where_that_raised_it(
    raising: Callable[[], Any], outcome: Outcome
) -> None:
    """A grid that is a function is the file's own."""
    launch = Launch("k", "k.py", 3)
    session = SimpleNamespace(launches=[launch])
    with pytest.raises((KeyError, TypeError)) as caught:
        raising()
    launch.error = caught.value
    assert problem_of(caught.value, cast(Session, session), "run", Path()).outcome is outcome


@pytest.mark.parametrize(
    ("said", "outcome"),
    [
        ("CUDA error: an illegal memory access was encountered", Outcome.OUT_OF_BOUNDS),
        ("CUDA error: misaligned address", Outcome.OUT_OF_BOUNDS),
        ("CUDA error: an illegal instruction was encountered", Outcome.CRASH),
        ("CUDA error: unspecified launch failure", Outcome.CRASH),
        ("Triton Error [CUDA]: invalid argument", Outcome.LAUNCH_ERROR),
    ],
)
def test_what_a_device_says_has_an_outcome(said: str, outcome: Outcome) -> None:
    """An access is the kernel's fault, an instruction that the device lacks its compiler's."""
    assert problem_of(RuntimeError(said), None, "run", Path()).outcome is outcome


@pytest.mark.slow
def test_two_runs_at_once_do_not_harm_each_other(project: Callable[[str], Project]) -> None:
    """One checkout, one empty cache, names of their own choice: both files are whole, and both runs pass."""
    made = project(MATRIX)
    kept = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}
    variables = {
        "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")])),
        "TMPDIR": str(made.temporary), "PORTABILITY_CACHE": str(made.folder / "cache"),
    }  # fmt: skip
    command = [sys.executable, "-m", "portability.cli", "run", "right", "vector_add", "-n0", "--target", "cuda:86"]
    both = [
        subprocess.Popen(
            [*command, "--target", "interpreter"], cwd=made.folder, env={**kept, **variables}, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )
        for _ in range(2)
    ]  # fmt: skip
    said = [process.communicate(timeout=300)[0] for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    first, second = (read_run(path) for path in sorted((made.folder / ".portability").glob("*.jsonl")))
    assert not first.interrupted
    assert not second.interrupted
    assert {o.cell for o in first.observations} == {o.cell for o in second.observations}
    assert {n for n in os.listdir(made.temporary) if not n.startswith("pytest-of-")} == set()


def _environment(process: str) -> str:
    try:
        return Path(f"/proc/{process}/environ").read_text(errors="replace")
    except OSError:
        return ""


@pytest.mark.skipif(not Path("/proc/self/autogroup").exists(), reason="a kernel without autogroups")
def test_a_runner_is_as_nice_as_the_run_that_started_it() -> None:
    """A session of its own would get a share of its own, whatever `nice` says."""
    code = "import os; print(os.nice(7))\nfrom portability.runner import _stay_nice\n_stay_nice()\n"
    code += "print(open('/proc/self/autogroup').read())"
    done = subprocess.run(
        [sys.executable, "-c", code], start_new_session=True, capture_output=True, text=True, check=True, cwd=ROOT
    )
    niceness, *_, group = done.stdout.split()
    assert int(niceness) >= 7
    assert group == niceness
