"""The command line: options after names, what follows "--", and errors that name place, value and choices."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from portability.cli import COMMANDS, main

from .conftest import Project

pytestmark = pytest.mark.slow  # starts whole runs: `pytest -m slow`


MATRIX = '[matrix]\nkernels = ["faulty.cases"]\n'


def test_every_command_is_a_module_that_helps(capsys: pytest.CaptureFixture[str]) -> None:
    """Each command of the table is there and describes itself."""
    for name in COMMANDS:
        with pytest.raises(SystemExit) as end:
            main([name, "--help"])
        assert end.value.code == 0
        assert capsys.readouterr().out.startswith(f"usage: portability {name}")


def test_options_after_kernels_are_ours_and_those_after_dashes_pytests(project: Callable[[str], Project]) -> None:
    """`run right --target T -- -k nothing`: T selects, and -k goes to pytest."""
    made = project(MATRIX)
    run, code, said = made.run("right", "nothing", "--target", "cuda:86", "-n0", "--", "-k", "right")
    assert code == 0, said
    assert [o.cell.id for o in run.observations] == ["right-float32-100-cuda:86"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["run", "rigth"], "'rigth' is nothing here; nearest"),
        (["run", "--target", "cuda:91"], "'cuda:91' is nothing here; nearest"),
        (["run", "--resume", "none.jsonl"], "none.jsonl: cannot be read"),
        (["table", "none.jsonl"], "none.jsonl: cannot be read"),
        (["explain", "x", "none.jsonl"], "none.jsonl: cannot be read"),
    ],
)
def test_bad_input_is_exit_code_2_and_named(project: Callable[[str], Project], words: list[str], said: str) -> None:
    done = project(MATRIX).portability(*words)
    assert done.returncode == 2
    assert said in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[matrix]\nkernel = ["x"]\n', "kernels"),
        ('[[expect]]\nkernel = "rigth"\noutcome = "wrong"\nreason = "r"\n', "right"),
        ('[[expect]]\nkernel = "vector_add"\noutcome = "wrogn"\nreason = "r"\n', "wrong"),
        ('[[expect]]\nkernel = "vector_add"\noutcome = "wrong"\nreason = "r"\ntriton = "3.x"\n', "triton"),
        ('[matrix]\nbackends = ["no_such_backend"]\n', "no_such_backend"),
    ],
)
def test_a_wrong_matrix_is_refused_by_name(project: Callable[[str], Project], text: str, said: str) -> None:
    """The file, the value and the nearest right name are in the error, and nothing runs."""
    done = project(text + ("" if "[matrix]" in text else MATRIX)).portability("run", "right", "-n0")
    assert done.returncode == 2, done.stdout
    assert said in done.stdout + done.stderr
