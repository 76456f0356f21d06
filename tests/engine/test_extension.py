"""A backend is one loose file, a kernel one module with a matrix.toml; the shell's variables change nothing."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from portability.model import Evidence, Outcome

from .conftest import Project, by_cell

pytestmark = pytest.mark.slow  # starts whole runs: `pytest -m slow`

BACKEND = '''
"""A fourth backend: the interpreter under another name, which takes float32 alone."""

from portability.backend import Backend, Limits
from portability.interpret import opened
from portability.model import Evidence, Target


class Fourth(Backend):
    name = "fourth"
    targets = ("fourth:1",)
    dtypes = {"*": ("float32",)}
    limits = {"*": Limits(grid_total=1, source="invented for this test")}

    def status(self):
        return [Target("fourth:1", self.name, "Fourth", evidence=Evidence.INTERPRETED, why="a test")]

    def open(self, target):
        return opened(target)
'''
MATRIX = '[matrix]\nkernels = ["faulty.cases"]\nbackends = ["fourth"]\n'


def test_a_fourth_backend_is_one_loose_file(project: Callable[[str], Project]) -> None:
    """Its column fills, its limits are judged, and nothing else was edited."""
    made = project(MATRIX)
    (made.folder / "fourth.py").write_text(BACKEND)
    targets = ("--target", "fourth:1", "--target", "interpreter")
    run, _, said = made.run("right", "slow", *targets, "-n0", "--", "-k", "100")
    found = by_cell(run)
    assert found["right", "fourth:1"].outcome is Outcome.PASS, said
    assert found["right", "fourth:1"].evidence is Evidence.INTERPRETED
    assert "fourth:1" in said
    assert "Fourth" in said


def test_variables_of_the_shell_change_no_result(project: Callable[[str], Project]) -> None:
    """TRITON_INTERPRET would turn every compiled cell into an interpreted one, and a cache folder hide a compile."""
    made = project(MATRIX.replace('backends = ["fourth"]\n', ""))
    variables = {"TRITON_INTERPRET": "1", "TRITON_CACHE_DIR": str(made.folder / "mine"), "TRITON_ALWAYS_COMPILE": "1"}
    results = made.folder / "results.jsonl"
    done = made.portability(
        "run", "right", "--target", "cuda:86", "-n0", "--results", str(results), variables=variables
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    assert "compiled 1/1" in done.stdout
    assert not (made.folder / "mine").exists()


def test_in_process_runs_where_a_debugger_can_stop(project: Callable[[str], Project]) -> None:
    """The cells of one target run in pytest's own process; two targets are refused."""
    made = project(MATRIX.replace('backends = ["fourth"]\n', ""))
    (made.folder / "test_it.py").write_text("from portability.testing import test_cell\n")
    words = ["-m", "pytest", "-q", "test_it.py", "--in-process", "--kernel", "right"]
    one = made.python(*words, "--target", "interpreter")
    assert one.returncode == 0, one.stdout + one.stderr
    assert "1 interpreted" in one.stdout
    two = made.python(*words, "--target", "interpreter", "--target", "cuda:86")
    assert "--in-process takes one target" in two.stdout + two.stderr
    assert two.returncode != 0
