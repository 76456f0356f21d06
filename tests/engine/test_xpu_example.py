"""A third-party backend in a distribution of its own: found by its entry points, opened in its own environment."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import tomllib

from portability import environments
from portability.harness import Harness
from portability.matrix import Matrix
from portability.model import Evidence, Outcome

from .conftest import ROOT, Project, by_cell

EXAMPLE = ROOT / "examples" / "xpu"
POINTS = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]["entry-points"]
INSTALLED = environments.installed().get("xpu")
needs_environment = pytest.mark.skipif(
    INSTALLED is None, reason="portability env create xpu, with examples/xpu installed"
)
MATRIX = '[matrix]\nkernels = ["faulty.cases"]\n'


@pytest.fixture
def distribution(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that Python takes for one in which the example is installed."""
    site = tmp_path / "site"
    info = site / "portability_xpu-0.1.0.dist-info"
    info.mkdir(parents=True)
    (site / "portability_xpu").symlink_to(EXAMPLE / "portability_xpu", target_is_directory=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: portability-xpu\nVersion: 0.1.0\n")
    lines = [f"[{group}]\n" + "".join(f"{k} = {v}\n" for k, v in found.items()) for group, found in POINTS.items()]
    (info / "entry_points.txt").write_text("\n".join(lines))
    monkeypatch.syspath_prepend(str(site))
    return site


def test_its_environment_can_be_made_by_name(distribution: Path) -> None:
    assert environments.known()["xpu"].triton.startswith("triton-xpu==")


@pytest.mark.parametrize(
    ("value", "said"),
    [("portability_xpu.recipe:__doc__", "a Recipe is needed"), ("portability_xpu.none:XPU", "cannot be imported")],
)
def test_an_entry_point_that_is_no_recipe_is_refused_by_name(distribution: Path, value: str, said: str) -> None:
    info = next(distribution.glob("*.dist-info"))
    (info / "entry_points.txt").write_text(f"[portability.environments]\nbad = {value}\n")
    with pytest.raises(ValueError, match=f"entry point bad = {value}: {said}"):
        environments.known()


def test_a_runner_of_its_environment_is_told_of_the_adapter_and_finds_it(distribution: Path, tmp_path: Path) -> None:
    """Nothing is installed there: the adapter's package is linked beside the engine."""
    from portability.backend import discover

    discover.cache_clear()
    harness = Harness(Matrix(), tmp_path, tmp_path, {})
    try:
        modules = harness._modules_for("xpu")
        assert modules == ["portability_xpu.xpu:Xpu"]
        assert harness._modules_for("default") == []
        _, variables = environments.start(environments.Environment("xpu", "python"), tmp_path, modules)
        linked = {p.name for p in Path(variables["PYTHONPATH"]).iterdir()}
        assert linked == {"portability", "portability_xpu"}
    finally:
        harness.close()
        discover.cache_clear()


@pytest.mark.slow
@needs_environment
def test_its_columns_fill_with_no_edit_of_the_engine(project: Callable[[str], Project], distribution: Path) -> None:
    made = project(MATRIX)
    results = made.folder / "results.jsonl"
    words = ["run", "right", "over_limit", "assembly", "--target", "xpu:*", "-n0", "--results", str(results)]
    paths = os.pathsep.join([str(ROOT), str(distribution)])
    done = made.portability(*words, variables={"PYTHONPATH": paths})
    assert results.exists(), done.stdout + done.stderr
    from portability.results import read_run

    found = by_cell(read_run(results))
    evidence = {o.evidence for o in found.values()}
    assert evidence <= {Evidence.COMPILED, Evidence.LOWERED}
    assert found["right", "xpu:pvc"].outcome is Outcome.PASS
    assert found["over_limit", "xpu:dg2"].outcome is Outcome.OUT_OF_RESOURCES
    if evidence == {Evidence.COMPILED}:
        assert found["assembly", "xpu:pvc"].outcome is Outcome.COMPILE_ERROR
    assert "Max 1550" in done.stdout
    assert "Arc A770" in done.stdout


@pytest.mark.slow
def test_its_own_tests_pass() -> None:
    """Those that need the environment or ocloc are skipped with the reason where these are missing."""
    paths = os.pathsep.join([str(ROOT), str(EXAMPLE)])
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-rs"], cwd=EXAMPLE, text=True,
        capture_output=True, env={**os.environ, "PYTHONPATH": paths}, timeout=900, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
