"""What a package is scanned with, and for which targets it is recorded."""

from __future__ import annotations

from pathlib import Path

import pytest

from portability.commands.scan import program_of, targets_to_record
from tests.engine.conftest import Project


def test_a_driver_is_run_with_its_arguments() -> None:
    """What follows -- is the driver's own."""
    assert program_of("anything", Path("driver.py"), ["--fast"]) == ["driver.py", "--fast"]


def test_what_follows_is_pytests_where_there_is_no_driver() -> None:
    """A test suite anywhere."""
    assert program_of("anything", None, ["tests", "-x"]) == ["pytest", "tests", "-x"]


@pytest.mark.parametrize("where", ["project/tests", "tests"])
def test_tests_are_found_in_and_beside_a_folder(tmp_path: Path, where: str) -> None:
    """As packages and projects have them."""
    (tmp_path / "project").mkdir()
    (tmp_path / where).mkdir()
    assert program_of(f"{tmp_path}/project", None, []) == ["pytest", str(tmp_path / where)]


def test_a_package_without_tests_needs_a_driver(tmp_path: Path) -> None:
    """The message says both ways."""
    with pytest.raises(ValueError, match="--driver FILE"):
        program_of(f"{tmp_path}/", None, [])


def test_a_package_that_is_not_here_is_named() -> None:
    """And how a folder is written."""
    with pytest.raises(ValueError, match="no_such_package: no such package"):
        program_of("no_such_package", None, [])


def test_a_program_is_recorded_once_for_each_compiler() -> None:
    """It may choose other blocks where it finds another vendor's device."""
    assert targets_to_record([]) == ["cuda:90", "hip:gfx942"]
    assert targets_to_record(["hip:gfx1*"]) == ["hip:gfx1100"]


DRIVER = """\
import torch
from tests.engine.recorded_kernels import scale
x = torch.ones(64, device="cuda")
scale[(1,)](x, x, 64, BLOCK=64, num_warps=16 if torch.version.hip else 32)
"""


@pytest.mark.slow
def test_a_scan_records_and_compiles(tmp_path: Path) -> None:
    """Each target what the program launches where it finds that vendor's device: nothing fails here."""
    project = Project(tmp_path)
    (tmp_path / "driver.py").write_text(DRIVER)
    words = ("scan", "tests", "--driver", "driver.py", "--target", "cuda:80", "--target", "hip:gfx942")
    done = project.portability(*words)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 cells by evidence: compiled 2" in " ".join(done.stdout.split())
