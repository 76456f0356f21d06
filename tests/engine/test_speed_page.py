"""The page of speeds holds the figures of the committed run, and says what falls short."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def kernels() -> ModuleType:
    spec = importlib.util.spec_from_file_location("benchmark_of_kernels", ROOT / "benchmarks" / "kernels.py")
    assert spec is not None and spec.loader is not None  # noqa: PT018
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_in_step_with_the_results(kernels: ModuleType) -> None:
    made = json.loads((ROOT / "results" / "kernels.json").read_text(encoding="utf-8"))
    page = (ROOT / "docs" / "speed.md").read_text(encoding="utf-8")
    assert kernels.render(made) in page


def test_a_row_names_each_figure_that_it_falls_short_of(kernels: ModuleType) -> None:
    row = {"ms": 2.0, "ceiling": 0.5, "asked": {"fast": 1.0, "slow": 1.0, "gone": 1.0, "ceiling": 0.8}}
    row["peers"] = {"fast": {"ms": 1.0}, "slow": {"ms": 4.0}, "gone": {"error": "ImportError"}}
    assert kernels.short_of(row) == [
        "0.50 of 1 asked against fast",
        "gone was not timed",
        "0.50 of 0.8 asked against ceiling",
    ]


def test_a_page_without_marks_is_left_alone(kernels: ModuleType, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("nothing here\n")
    with pytest.raises(ValueError, match=r"page\.md: has not the marks"):
        kernels.update(page, "text")
    assert page.read_text() == "nothing here\n"
