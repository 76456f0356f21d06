"""No path of one machine enters a record."""

from __future__ import annotations

import tempfile
from pathlib import Path

import triton

from portability.paths import without_paths


def test_a_runners_own_folders_go() -> None:
    said = "ptxas /var/tmp/portability-1-ab/runner-x_1/cell-9z/tmpq.ptx, line 3; error : no"
    assert without_paths(said) == "ptxas tmpq.ptx, line 3; error : no"


def test_paths_of_the_project_the_packages_and_the_temporary_folder_become_relative() -> None:
    here = Path(__file__).resolve()
    assert without_paths(f"{here}:3", here.parents[2]) == "tests/engine/test_paths.py:3"
    assert without_paths(f"at {triton.__file__}").startswith("at triton/")
    assert without_paths(f"{tempfile.gettempdir()}/x.o: no") == "x.o: no"


def test_other_text_stays() -> None:
    assert without_paths("a/b is 1/2 of c") == "a/b is 1/2 of c"
