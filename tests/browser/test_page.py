"""The page in a browser: what it shows, how it is filtered, linked, walked in and read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from portability.merge import Merged
from portability.site.data import columns_named
from portability.table import View, grid
from tests.browser.runs import WRONG_CELL, everything
from tests.engine.hostile import evil_runs

pytestmark = pytest.mark.slow  # starts whole runs: `pytest -m slow`


KERNELS = ["matmul", "vector_add float32 · 257"]
PHONE = {"width": 390, "height": 844}

# What every square says, by row and column.
SQUARES = """() => Object.fromEntries([...document.querySelectorAll('#grid tbody td [data-key]')].map((at) =>
  [at.dataset.key, at.textContent.replace(/\\s+/g, ' ').trim()]))"""


@pytest.fixture(scope="module")
def merged() -> Merged:
    return everything()


@pytest.fixture(scope="module")
def path(written: Callable[[Merged], Path], merged: Merged) -> Path:
    return written(merged)


def rows(page: Any) -> list[str]:
    return [text.strip() for text in page.locator("#grid tbody .name").all_inner_texts()]


def columns(page: Any) -> list[str]:
    return [str(link.get_attribute("data-key"))[1:] for link in page.locator("#grid thead a").all()]


def address(page: Any) -> str:
    return str(page.evaluate("location.hash"))


def expected(merged: Merged, view: View) -> Iterator[tuple[str, str]]:
    table = grid(merged, view)
    keys = columns_named(table.columns)
    for row in table.rows:
        for column, square in zip(table.columns, row.squares, strict=True):
            yield f"{row.names[0]}|{keys[column]}", square.text


# ------------------------------------------------------------------------------------------------- the squares


@pytest.mark.parametrize("view", View)
def test_squares_say_what_the_table_in_a_terminal_says(show: Any, path: Path, merged: Merged, view: View) -> None:
    page = show(path, f"#view={view}")
    said = page.evaluate(SQUARES)
    assert {key: said[key] for key, _ in expected(merged, view)} == dict(expected(merged, view))


def test_a_column_says_its_title_and_its_target(show: Any, path: Path) -> None:
    head = show(path).locator("#grid thead")
    assert "MI300X" in head.inner_text()
    assert "hip:gfx942" in head.inner_text()


def test_a_row_opens_into_dtypes_and_samples(show: Any, path: Path) -> None:
    page = show(path)
    page.get_by_role("button", name="matmul").click()
    assert rows(page)[:3] == ["matmul", "float32 64x64", "float16"]
    assert "toggle=matmul" in address(page)
    page.get_by_role("combobox", name="Rows").select_option("by samples")
    assert rows(page)[:6] == ["matmul", "float32 64x64", "float16", "64x64", "tall", "vector_add float32 · 257"]


# ------------------------------------------------------------------------------------------------- the filters


def tick(page: Any, menu: str, choice: str) -> None:
    page.locator(f"details.menu[data-facet={menu}] summary").click()
    page.locator(f"details.menu[data-facet={menu}] input[value='{choice}']").click()
    page.keyboard.press("Escape")


@pytest.mark.parametrize(
    ("facet", "choice", "kernels", "targets"),
    [
        ("backend", "rocm", KERNELS, ["hip:gfx942"]),
        ("target", "cuda:90", KERNELS, ["cuda:90"]),
        ("dtype", "float32", KERNELS, ["cuda:80", "cuda:90", "hip:gfx942", "interpreter"]),
        ("outcome", "out_of_resources", ["matmul"], ["hip:gfx942"]),
        ("standing", "regression", ["matmul"], ["cuda:90", "hip:gfx942"]),
        ("version", "3.8", ["matmul"], ["cuda:90"]),
    ],
)
def test_a_filter_narrows_the_table_and_stands_in_the_address(
    show: Any, path: Path, facet: str, choice: str, kernels: list[str], targets: list[str]
) -> None:
    page = show(path)
    tick(page, facet, choice)
    assert (rows(page), sorted(columns(page))) == (kernels, targets)
    again = show(path, address(page))
    assert (rows(again), sorted(columns(again))) == (kernels, targets)
    assert again.evaluate(SQUARES) == page.evaluate(SQUARES)


def test_evidence_is_filtered_by_its_own_buttons(show: Any, path: Path) -> None:
    page = show(path)
    page.get_by_role("button", name="interpreted").click()
    assert columns(page) == ["interpreter"]
    assert page.get_by_role("button", name="interpreted").get_attribute("aria-pressed") == "true"
    assert "evidence=interpreted" in address(page)


def test_a_version_shows_its_own_observation_of_a_cell(show: Any, path: Path) -> None:
    """The newer Triton compiled what the older ran: each is shown as what it was."""
    key = "matmul/float16/64x64|cuda:90"
    old, new = (show(path, f"#depth=3&version={v}").evaluate(SQUARES)[key] for v in ("3.8", "3.9"))
    assert (old, new) == ("ran 1/1", "compiled 1/1")


@pytest.mark.parametrize(("text", "kernels"), [("VECTOR", KERNELS[1:]), ("matmul 205744", ["matmul"]), ("no such", [])])
def test_text_filters_by_names_and_errors(show: Any, path: Path, text: str, kernels: list[str]) -> None:
    page = show(path)
    page.locator("#text").fill(text)
    assert rows(page) == kernels
    assert rows(show(path, address(page))) == kernels


def test_a_filter_is_removed_by_its_chip_and_all_by_reset(show: Any, path: Path) -> None:
    page = show(path, "#backend=rocm&dtype=float32")
    page.get_by_role("link", name="Backend: rocm").click()
    assert "cuda:80" in columns(page)
    page.get_by_role("link", name="Reset").click()
    assert len(columns(page)) == 5


def test_a_choice_that_these_results_do_not_have_shows_nothing_and_says_so(show: Any, path: Path) -> None:
    page = show(path, "#dtype=float8")
    assert rows(page) == []
    assert "Dtype: float8" in page.locator("#chips").inner_text()
    page.get_by_role("link", name="Show everything").click()
    assert rows(page) == KERNELS


@pytest.mark.parametrize(
    ("fragment", "said"), [("", "11 cells"), ("#backend=rocm", "3 of 11 cells"), ("#view=times", "1 time")]
)
def test_the_number_of_cells_is_said(show: Any, path: Path, fragment: str, said: str) -> None:
    """A cell of which there are two observations is one."""
    assert show(path, fragment).get_by_role("status").inner_text() == said


def test_the_banner_leads_to_what_fails(show: Any, path: Path) -> None:
    page = show(path)
    page.locator(".state a").first.click()
    assert sorted(columns(page)) == ["cuda:90", "hip:gfx942"]


# --------------------------------------------------------------------------------------------------- the cells


def test_a_cell_shows_all_that_is_known_of_it(show: Any, path: Path) -> None:
    page = show(path, f"#cell={WRONG_CELL}")
    panel = page.get_by_role("dialog")
    panel.get_by_role("heading", level=2).wait_for()
    text = " ".join(panel.inner_text().split())
    for part in (
        "matmul float16 · 64x64 on MI300X",
        "compiled",
        "out_of_resources, and no rule declares it",
        "Stage launch",
        "kernels/matmul.py:41",
        "205744 B of shared memory, 163840 there Reduce num_stages.",
        "v_mfma_f32_32x32x8_f16",
        "205,744 of 163,840 B (126 %)",
        "256 of 1,024 a program (25 %)",
        "168 a thread",
        "25 %, bounded by shared",
        "BLOCK_M=128, num_warps=8 from rocm.toml",
        "grid-limit close to the limit kernels/matmul.py:7",
        "laptop",
        f"pytest tests/test_matrix.py --full --in-process --target 'hip:gfx942' -k '{WRONG_CELL}'",
    ):
        assert part in text
    assert panel.locator(".bar .over").count() == 1  # more shared memory than there is
    history = panel.get_by_role("region", name="History").inner_text().split("\n")
    assert [line.split("\t")[-2] for line in history[1:]] == ["out_of_resources", "pass"]


def test_a_timed_cell_shows_its_quantiles_and_its_ceiling(show: Any, path: Path) -> None:
    panel = show(path, "#cell=matmul-float16-64x64-cuda:90").get_by_role("dialog")
    panel.get_by_role("heading", level=2).wait_for()
    text = panel.inner_text()
    assert "204 µs (20 % in 202 µs, 80 % in 206 µs)" in text
    assert "82 % of matmul float16 780 TFLOP/s" in text
    assert "1.25× the speed of torch" in text
    assert "NVIDIA H200" in text


def test_a_declared_cell_shows_its_rule_and_its_reason(show: Any, path: Path) -> None:
    panel = show(path, "#cell=vector_add-float32-257-hip:gfx942").get_by_role("dialog")
    panel.get_by_role("heading", level=2).wait_for()
    assert "no TF32 on gfx942" in panel.inner_text()
    link = panel.get_by_role("link", name="https://example.org/issues/7")
    assert link.get_attribute("rel") == "noopener noreferrer nofollow"


def test_error_stands_against_tolerance(show: Any, path: Path) -> None:
    panel = show(path, "#cell=matmul-float32-64x64-cuda:90").get_by_role("dialog")
    panel.get_by_role("heading", level=2).wait_for()
    assert "largest error 0.3, 0.1 allowed there; 3 of what is allowed" in panel.inner_text()


def test_a_square_of_several_cells_lists_them_the_worst_first(show: Any, path: Path) -> None:
    page = show(path)
    page.locator('[data-key="matmul|hip:gfx942"]').click()
    panel = page.get_by_role("dialog")
    assert panel.locator(".cells a").all_inner_texts() == ["matmul · float16 · 64x64", "matmul · float32 · 64x64"]
    panel.locator(".cells a").first.click()
    panel.get_by_text("out_of_resources, and no rule declares it").wait_for()
    assert f"cell={WRONG_CELL.replace(':', '%3A')}" in address(page)
    page.go_back()
    panel.get_by_text("2 cells").wait_for()


def test_a_column_says_why_it_is_missing_and_what_gives_more(show: Any, path: Path) -> None:
    page = show(path)
    page.locator('[data-key="|npu:910B"]').click()
    assert "triton-ascend is not installed" in page.get_by_role("dialog").inner_text()
    assert "portability env create ascend" in page.get_by_role("dialog").inner_text()


def test_a_link_to_a_cell_that_is_not_there_says_so(show: Any, path: Path) -> None:
    panel = show(path, "#cell=gone").get_by_role("dialog")
    assert "gone: no such cell or column is here" in panel.inner_text()


def test_times_have_a_table_that_leads_to_the_cells(show: Any, path: Path) -> None:
    page = show(path, "#view=times")
    (line,) = page.locator("#times-table tbody tr").all_inner_texts()
    assert line.split("\t")[1:4] == ["H100", "204 us", "2 %"]
    page.get_by_role("link", name="matmul · float16 · 64x64").click()
    page.get_by_role("dialog").get_by_text("204 µs (20 %").wait_for()


def test_notes_say_where_it_comes_from(show: Any, path: Path) -> None:
    text = show(path, "#view=notes").locator(".notes").inner_text()
    assert "Where it comes from" in text
    assert "lab; Linux x86_64" in text


# ------------------------------------------------------------------------------------------------ the keyboard


def focused(page: Any) -> str:
    return str(page.evaluate("document.activeElement.dataset.key ?? document.activeElement.id"))


def test_the_table_is_one_stop_and_arrows_walk_in_it(show: Any, path: Path) -> None:
    page = show(path)
    page.locator("#depth").focus()
    page.keyboard.press("Tab")
    assert focused(page) == "matmul|"
    for key, at in (
        ("ArrowRight", "matmul|interpreter"),
        ("ArrowDown", "vector_add|interpreter"),
        ("End", "vector_add|npu:910B"),
        ("Control+Home", "|npu:910B"),
        ("ArrowLeft", "|hip:gfx942"),
        ("ArrowDown", "matmul|hip:gfx942"),
        ("Home", "matmul|"),
    ):
        page.keyboard.press(key)
        assert (key, focused(page)) == (key, at)
    page.keyboard.press("Tab")
    assert "|" not in focused(page)


def test_enter_opens_a_square_and_escape_returns_to_it(show: Any, path: Path) -> None:
    page = show(path)
    page.locator('[data-key="matmul|hip:gfx942"]').focus()
    page.keyboard.press("Enter")
    panel = page.get_by_role("dialog")
    panel.wait_for()
    assert page.evaluate("document.getElementById('panel').contains(document.activeElement)")
    page.keyboard.press("Escape")
    panel.wait_for(state="hidden")
    assert focused(page) == "matmul|hip:gfx942"
    assert "cell" not in address(page)


def test_a_row_is_opened_by_the_keyboard_and_keeps_the_focus(show: Any, path: Path) -> None:
    page = show(path)
    page.get_by_role("button", name="matmul").focus()
    page.keyboard.press("Enter")
    assert page.get_by_role("button", name="matmul").get_attribute("aria-expanded") == "true"
    assert focused(page) == "matmul|"


def test_a_slash_goes_to_the_filter(show: Any, path: Path) -> None:
    page = show(path)
    page.keyboard.press("/")
    page.keyboard.type("exp")
    assert focused(page) == "text"
    assert page.locator("#text").input_value() == "exp"


# ------------------------------------------------------------------------------------ screens, colours, no script


def test_headings_stay_while_the_table_scrolls(show: Any, path: Path) -> None:
    page = show(path, "#depth=3", viewport={"width": 500, "height": 320})
    page.evaluate("Object.assign(document.getElementById('grid'), {scrollTop: 120, scrollLeft: 150})")
    offset = """(what) => { const at = document.querySelector(what).getBoundingClientRect();
        const box = document.getElementById('grid').getBoundingClientRect();
        return [at.left - box.left, at.top - box.top]; }"""
    assert abs(page.evaluate(offset, "#grid thead")[1]) < 2
    assert abs(page.evaluate(offset, "#grid tbody th")[0]) < 2


@pytest.mark.parametrize("fragment", ["", "#view=api", "#view=times", "#view=notes", f"#cell={WRONG_CELL}"])
def test_a_phone_needs_no_sideways_scrolling_of_the_page(show: Any, path: Path, fragment: str) -> None:
    page = show(path, fragment, viewport=PHONE, is_mobile=True, has_touch=True)
    page.wait_for_timeout(100)
    assert page.evaluate("document.scrollingElement.scrollWidth") <= PHONE["width"]
    panel = page.locator("#panel[open]")
    if panel.count():
        assert panel.bounding_box()["width"] == PHONE["width"]


def test_a_menu_can_be_reached_on_a_phone(show: Any, path: Path) -> None:
    page = show(path, viewport=PHONE, is_mobile=True, has_touch=True)
    page.locator("details.menu[data-facet=backend] summary").tap()
    page.locator("details.menu[data-facet=backend] input[value=rocm]").tap()
    assert columns(page) == ["hip:gfx942"]


def ground(page: Any) -> tuple[int, ...]:
    colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
    return tuple(int(part) for part in colour.removeprefix("rgb(").removesuffix(")").split(","))


def test_it_is_dark_where_the_system_is_and_where_it_is_chosen(show: Any, path: Path) -> None:
    light, dark = (show(path, color_scheme=scheme) for scheme in ("light", "dark"))
    assert min(ground(light)) > 200
    assert max(ground(dark)) < 60
    dark.get_by_role("combobox", name="Colours").select_option("light")
    assert min(ground(dark)) > 200
    dark.reload()
    assert min(ground(dark)) > 200  # it is remembered


def test_evidence_has_a_shape_beside_its_word(show: Any, path: Path) -> None:
    page = show(path)
    shapes = page.evaluate("""[...document.querySelectorAll('#strip .ball')].map((ball) => {
        const style = getComputedStyle(ball); return style.backgroundImage + style.borderStyle; })""")
    assert len(set(shapes)) == 6


def test_without_scripts_the_tables_are_there(show: Any, path: Path) -> None:
    page = show(path, java_script_enabled=False)
    text = page.locator("body").inner_text()
    assert "compiled 1/2 out_of_resources!" in text
    assert "Where it comes from" in text


# --------------------------------------------------------------------------------------------------- hostility


def test_a_hostile_file_is_shown_and_does_nothing(show: Any, written: Callable[[Merged], Path]) -> None:
    page = show(written(evil_runs()), "#depth=3")
    page.locator("#grid td a").first.click()
    page.get_by_role("dialog").get_by_role("heading", level=2).wait_for()
    assert page.evaluate("window.evil") is None
    assert "<script>" in page.get_by_role("dialog").inner_text()  # as text
    assert page.locator("a[href^=javascript]").count() == 0
    for view in ("times", "charts", "notes"):
        page.evaluate(f"location.hash = '#view={view}'")
    assert page.locator("img, iframe, object, embed").count() == 0
    assert "\u202e" not in page.content()


@pytest.mark.parametrize(
    "fragment", ["#view=<img src=x>", "#cell=%3Cscript%3Ealert(1)%3C/script%3E", "#depth=1e9", "#row=%00&in=__proto__"]
)
def test_a_hostile_address_does_nothing(show: Any, path: Path, fragment: str) -> None:
    page = show(path, fragment)
    assert page.locator("img, #panel script").count() == 0
