"""What tests of the engine share: a project of faulty kernels, and runs of it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from portability.model import Observation
from portability.results import Run, read_run

HERE = Path(__file__).parent
ROOT = HERE.parent.parent


@dataclass(frozen=True)
class Project:
    """A project in a folder of its own, with kernels in one module and a matrix.toml."""

    folder: Path

    def portability(
        self, *words: str, variables: Mapping[str, str] = {}, timeout: float = 240
    ) -> subprocess.CompletedProcess[str]:
        """Run `portability` there."""
        return self.python("-m", "portability.cli", *words, variables=variables, timeout=timeout)

    def python(
        self, *words: str, variables: Mapping[str, str] = {}, timeout: float = 240
    ) -> subprocess.CompletedProcess[str]:
        """Run Python there."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST_", "PORTABILITY_MATRIX"))}
        paths = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
        environment = {**kept, "PYTHONPATH": paths, "TMPDIR": str(self.temporary), **variables}
        return subprocess.run(
            [sys.executable, *words], cwd=self.folder, env=environment, text=True, capture_output=True,
            timeout=timeout, check=False,
        )  # fmt: skip

    @property
    def temporary(self) -> Path:
        """The folder in which everything that runs there makes its temporary files."""
        folder = self.folder / "tmp"
        folder.mkdir(exist_ok=True)
        return folder

    def run(self, *words: str, variables: Mapping[str, str] = {}, timeout: float = 240) -> tuple[Run, int, str]:
        """Run the matrix; return what was recorded, the exit code, and what was printed."""
        results = self.folder / "results.jsonl"
        results.unlink(missing_ok=True)
        done = self.portability("run", "--results", str(results), *words, variables=variables, timeout=timeout)
        assert results.exists(), done.stdout + done.stderr
        return read_run(results), done.returncode, done.stdout + done.stderr


def by_cell(run: Run) -> dict[tuple[str, str], Observation]:
    """Return the observations by kernel and target."""
    return {(o.cell.kernel, o.cell.target): o for o in run.observations}


@pytest.fixture
def project(tmp_path: Path) -> Callable[[str], Project]:
    """Make a project whose matrix.toml holds the given text."""

    def make(matrix: str) -> Project:
        shutil.copytree(HERE / "faulty", tmp_path / "faulty")
        (tmp_path / "matrix.toml").write_text(matrix)
        return Project(tmp_path)

    return make
