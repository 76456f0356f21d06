"""No rule of axe-core is violated, on any view, light and dark, on a desk and on a phone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from portability.merge import Merged
from tests.browser.runs import WRONG_CELL, everything

pytestmark = pytest.mark.slow  # starts whole runs: `pytest -m slow`


axe = pytest.importorskip(
    "axe_playwright_python.sync_playwright", reason="axe-core is not installed: pip install -e .[browser]"
)

VIEWS = (
    "#view=kernels&depth=3",
    "#view=api",
    "#view=packages",
    "#view=times",
    "#view=charts",
    "#view=notes",
    "#dtype=gone",
)
OPENED = (f"#cell={WRONG_CELL}", "#cell=matmul-float16-64x64-cuda:90", "#in=hip:gfx942&row=matmul", "#in=npu:910B")


@pytest.fixture(scope="module")
def path(written: Callable[[Merged], Path]) -> Path:
    return written(everything())


def violations(page: Any) -> list[str]:
    """Run every rule, those for best practice too; what axe cannot decide it leaves to people."""
    found = axe.Axe().run(page).response["violations"]
    return [f"{v['id']}: {v['help']}: {node['html'][:120]}" for v in found for node in v["nodes"]]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("fragment", VIEWS + OPENED)
def test_axe_finds_nothing_on_a_desk(show: Any, path: Path, fragment: str, scheme: str) -> None:
    page = show(path, fragment, color_scheme=scheme)
    if fragment in OPENED:
        page.get_by_role("dialog").get_by_role("heading", level=2).wait_for()
    assert violations(page) == []


@pytest.mark.parametrize("fragment", [VIEWS[0], OPENED[0]])
def test_axe_finds_nothing_on_a_phone(show: Any, path: Path, fragment: str) -> None:
    page = show(path, fragment, viewport={"width": 390, "height": 844}, is_mobile=True, has_touch=True)
    if fragment in OPENED:
        page.get_by_role("dialog").get_by_role("heading", level=2).wait_for()
    assert violations(page) == []


def test_axe_finds_nothing_in_an_open_menu_and_legend(show: Any, path: Path) -> None:
    page = show(path)
    page.get_by_text("How to read a square").click()
    page.locator("details.menu[data-facet=outcome] summary").click()
    assert violations(page) == []


def test_a_screen_reader_meets_the_page_in_this_order(show: Any, path: Path) -> None:
    """Heading, what fails, views, filters, then a table with headings for its rows and columns."""
    lines = [line.strip() for line in show(path).locator("body").aria_snapshot().split("\n")]
    wanted = (
        "- banner",
        "- 'heading",
        "- paragraph",
        "- navigation",
        "- search",
        "- status",
        "- 'table",
        "- columnheader",
        "- rowheader",
        "- contentinfo",
    )
    places = [next(i for i, line in enumerate(lines) if line.startswith(want)) for want in wanted]
    assert places == sorted(places)


def test_a_square_is_read_with_its_evidence_its_count_and_its_outcome(show: Any, path: Path) -> None:
    page = show(path)
    square = page.get_by_role("link", name="compiled 1/2 out_of_resources!")
    assert square.get_attribute("data-key") == "matmul|hip:gfx942"
