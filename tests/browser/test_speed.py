"""10,000 cells: the page opens in a second and filters in a tenth of one.

Other work on the machine can only add time, so the shortest of a few tries is what the page takes.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from portability.merge import Merged
from tests.engine.many_cells import many

pytestmark = pytest.mark.slow  # starts whole runs: `pytest -m slow`


# Milliseconds from the key's event until the table is laid out anew.
FILTER = """(text) => {
    const box = document.getElementById('text');
    box.value = text;
    const began = performance.now();
    box.dispatchEvent(new Event('input'));
    document.getElementById('grid').getBoundingClientRect();
    return performance.now() - began;
}"""
OPEN = """async () => {
    const began = performance.now();
    location.hash = '#cell=kernel_9-float16-1x1x1-cuda:80';
    while (!document.getElementById('panel').open) await new Promise(requestAnimationFrame);
    return performance.now() - began;
}"""


@pytest.fixture(scope="module")
def path(written: Callable[[Merged], Path]) -> Path:
    return written(many())


def test_it_opens_in_a_second(show: Any, path: Path) -> None:
    times = [show(path).evaluate("performance.getEntriesByName('ready')[0].startTime") for _ in range(4)]
    assert min(times) < 1000


@pytest.mark.parametrize("fragment", ["", "#depth=3", "#view=api&depth=4"])
def test_it_filters_in_a_tenth_of_a_second(show: Any, path: Path, fragment: str) -> None:
    """Also where every row is open: the first rows are there at once, and the others follow."""
    page = show(path, fragment)
    words = ("e", "float16", "_1", "cuda", "")
    slowest = max(min(page.evaluate(FILTER, word) for _ in range(4)) for word in words)
    assert slowest < 100


def test_rows_come_as_one_scrolls(show: Any, path: Path) -> None:
    page = show(path, "#depth=3")
    rows = page.locator("#grid tbody tr")
    assert rows.count() < 200
    for _ in range(30):
        page.evaluate("document.getElementById('grid').scrollBy(0, 1e5)")
        page.wait_for_timeout(50)
    assert rows.count() == 30 + 30 * 4 + 30 * 4 * 3


def test_a_key_goes_to_the_last_row(show: Any, path: Path) -> None:
    page = show(path, "#depth=3")
    page.locator("#grid tbody .name").first.focus()
    page.keyboard.press("Control+End")
    page.keyboard.press("Home")
    assert page.evaluate("document.activeElement.textContent") == "1x1x1"


def test_a_cell_opens_in_half_a_second(show: Any, path: Path) -> None:
    page = show(path)
    assert page.evaluate(OPEN) < 500
