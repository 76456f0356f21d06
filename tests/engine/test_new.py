"""New kernels and backends: what is written, what never is, and the tutorial's own commands."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from portability.commands import run
from portability.matrix import MatrixError, parse_matrix
from portability.skeletons.write import PACKAGE, plan

from .conftest import ROOT, Project

TUTORIAL = ROOT / "docs" / "extend.md"
FENCED = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def written(kind: str, name: str, folder: Path) -> list[str]:
    return sorted(str(p.relative_to(folder)) for p in plan(kind, name, folder).write())


# ------------------------------------------------------------------------------------------------ what is written


def test_a_kernel_is_a_file_its_tests_and_a_name_in_matrix_toml(tmp_path: Path) -> None:
    assert written("kernel", "axpy", tmp_path) == ["axpy.py", "matrix.toml", "test_axpy.py"]
    assert parse_matrix((tmp_path / "matrix.toml").read_text()).kernels == ("axpy",)


def test_a_backend_has_its_block_table_beside_it(tmp_path: Path) -> None:
    assert written("backend", "acme", tmp_path) == ["acme.py", "acme.toml", "matrix.toml", "test_acme.py"]
    assert "class Acme(Backend):" in (tmp_path / "acme.py").read_text()


def test_a_package_of_kernels_that_is_searched_takes_the_file_and_nothing_else_changes(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "__init__.py").touch()
    (tmp_path / "tests").mkdir()
    (tmp_path / "matrix.toml").write_text('[matrix]\nkernels = ["mine"]\n')
    assert written("kernel", "axpy", tmp_path) == ["mine/axpy.py", "tests/test_axpy.py"]
    assert (tmp_path / "matrix.toml").read_text() == '[matrix]\nkernels = ["mine"]\n'


def test_the_nearest_matrix_toml_is_the_projects(tmp_path: Path) -> None:
    (tmp_path / "matrix.toml").write_text("")
    below = tmp_path / "below"
    below.mkdir()
    assert set(plan("kernel", "axpy", below).files) == {tmp_path / "axpy.py", tmp_path / "test_axpy.py"}


def test_in_this_repository_the_folders_at_the_top_take_them_and_no_list_is_edited() -> None:
    kernel, backend = plan("kernel", "axpy", ROOT), plan("backend", "acme", ROOT)
    assert PACKAGE.parent == ROOT
    assert set(kernel.files) == {ROOT / "kernels" / "axpy.py", ROOT / "tests" / "engine" / "test_axpy_kernel.py"}
    assert ROOT / "backends" / "acme.toml" in backend.files
    assert (kernel.matrix, backend.matrix) == (None, None)


def test_nothing_is_overwritten_and_nothing_is_written_half(tmp_path: Path) -> None:
    (tmp_path / "test_axpy.py").write_text("mine")
    with pytest.raises(FileExistsError, match=r"test_axpy\.py: is there already"):
        written("kernel", "axpy", tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["test_axpy.py"]
    assert (tmp_path / "test_axpy.py").read_text() == "mine"


@pytest.mark.parametrize("name", ["Axpy", "2fast", "a-b", "class", "", "a.b", "../up"])
def test_a_name_that_is_no_modules_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="small letters, digits and '_'"):
        plan("kernel", name, tmp_path)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", ("axpy",)),
        ("# a comment\n\n[matrix.limits]\nrun = 5\n", ("axpy",)),
        ('[matrix]  # mine\nsamples = "quick"\n', ("axpy",)),
        ('[matrix]\nkernels = "one"\nbackends = ["b"]\n', ("one", "axpy")),
        ('[matrix]\nkernels = [\n  "one",  # the first\n  "two",\n]\n', ("one", "two", "axpy")),
        ('[matrix]\nkernels = ["axpy"]\n', ("axpy",)),
        ('[[expect]]\nkernel = "k"\noutcome = "wrong"\nreason = "kernels = [1]"\n', ("axpy",)),
    ],
)
def test_matrix_toml_says_one_module_more_and_all_else_as_before(
    tmp_path: Path, before: str, after: tuple[str, ...]
) -> None:
    (tmp_path / "matrix.toml").write_text(before)
    written("kernel", "axpy", tmp_path)
    made, was = parse_matrix((tmp_path / "matrix.toml").read_text()), parse_matrix(before)
    assert made.kernels == after
    assert (made.backends, made.samples, made.limits, made.expectations) == (
        was.backends, was.samples, was.limits, was.expectations,
    )  # fmt: skip


def test_a_matrix_toml_that_is_written_unusually_is_left_to_its_owner(tmp_path: Path) -> None:
    (tmp_path / "matrix.toml").write_text('matrix.kernels = ["one"]\n')
    with pytest.raises((MatrixError, ValueError)):
        written("kernel", "axpy", tmp_path)
    assert (tmp_path / "matrix.toml").read_text() == 'matrix.kernels = ["one"]\n'


def test_out_of_a_checkout_that_is_not_installed_pytest_is_told_of_the_plugin(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tutorial's commands need no more than this package on the path."""
    monkeypatch.setattr(run, "entry_points", lambda **_: [])
    assert run._plugin() == ["-p", "portability.plugin"]


# ---------------------------------------------------------------------------------------------------- whole runs


@pytest.mark.slow
def test_the_tests_of_a_new_kernel_and_a_new_backend_pass_right_away(project: Callable[[str], Project]) -> None:
    made = project("")
    for words in (("new", "kernel", "axpy"), ("new", "backend", "acme")):
        done = made.portability(*words)
        assert done.returncode == 0, done.stdout + done.stderr
    tests = made.python("-m", "pytest", "-q", "test_axpy.py", "test_acme.py")
    assert tests.returncode == 0, tests.stdout + tests.stderr
    assert re.search(r"\d+ passed", tests.stdout)
    again = made.portability("new", "kernel", "axpy")
    assert again.returncode == 2
    assert "there is a kernel 'axpy' already" in again.stderr
    taken = made.portability("new", "kernel", "matmul")
    assert taken.returncode == 2
    assert "matmul.py" in taken.stderr


# --------------------------------------------------------------------------------------------------- the tutorial


def steps() -> Iterator[tuple[str, str, str]]:
    """Yield language, file and text of each fenced block of the tutorial."""
    yield from FENCED.findall(TUTORIAL.read_text(encoding="utf-8"))


def test_the_tutorial_has_commands_and_files() -> None:
    found = list(steps())
    assert sum(language == "sh" for language, _, _ in found) >= 4
    assert {file for _, file, _ in found if file} == {"acme.py", "matrix.toml", "portability-acme/pyproject.toml"}


@pytest.mark.slow
def test_the_tutorials_commands_do_what_it_says(tmp_path: Path) -> None:
    """In order, in an empty folder; the distribution is installed beside the environment and not into it."""
    folder, programs, site = (tmp_path / name for name in ("project", "bin", "site"))
    for made in (folder, programs, site, tmp_path / "tmp"):
        made.mkdir()
    install = f"install --quiet --no-deps --no-build-isolation --target {site}"
    for name, words in (
        ("portability", "-m portability.cli"), ("pytest", "-m pytest"),
        ("pip", f'-m pip --disable-pip-version-check {install} "${{@:2}}" #'),
    ):  # fmt: skip
        program = programs / name
        program.write_text(f'#!/bin/bash\nexec {sys.executable} {words} "$@"\n')
        program.chmod(0o755)
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST_", "PORTABILITY_MATRIX"))}
    environment = {
        **kept, "PATH": f"{programs}:{os.environ['PATH']}", "TMPDIR": str(tmp_path / "tmp"),
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(site)]),
    }  # fmt: skip
    said: list[str] = []
    for language, file, text in steps():
        if file:
            (folder / file).write_text(text)
        elif language == "sh":
            done = subprocess.run(
                ["bash", "-ex", "-c", text], cwd=folder, env=environment, capture_output=True, text=True, timeout=900,
                check=False,
            )  # fmt: skip
            assert done.returncode == 0, done.stdout + done.stderr
            said.append(done.stdout)
    kernel, skeleton, compiling, _, installed = said
    assert "Verdict: moves as it is, by code that was compiled" in kernel
    assert "interpreted 2/2" in skeleton
    assert "compiled 1/1" in compiling
    assert "compiled 1/1" in installed
    assert "Acme board" in installed
    assert not (folder / "acme.py").exists()
    shutil.rmtree(site)
