"""A real browser, Debian's Chromium, on pages that are files; each test fails by an error or a request of its page."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from portability.merge import Merged
from portability.report import build
from portability.site.write import write_site

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser") or ""
READY = "#views [aria-current]"  # set when the view is drawn

Open = Callable[..., Any]


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Chromium, once for all tests."""
    if not CHROMIUM:
        pytest.skip("no Chromium: apt-get install chromium")
    playwright = pytest.importorskip("playwright.sync_api", reason="no Playwright: pip install -e .[browser]")
    with playwright.sync_playwright() as driver:
        # A sandbox of its own is refused to root in a container; the pages are this project's.
        yield driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])


@pytest.fixture(scope="session")
def written(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Merged], Path]:
    """Write runs as a site, and return its page."""

    def write(merged: Merged) -> Path:
        return write_site(tmp_path_factory.mktemp("site"), merged, build(merged))

    return write


@pytest.fixture
def show(browser: Any) -> Iterator[Open]:
    """Open a page at a fragment of its address: `show(path, "#view=api", viewport=…, color_scheme=…)`."""
    contexts: list[Any] = []
    problems: list[str] = []

    def watch(page: Any) -> None:
        page.on("console", lambda m: problems.append(f"console: {m.text}") if m.type in ("error", "warning") else None)
        page.on("pageerror", lambda e: problems.append(f"error: {e}"))
        page.on("dialog", lambda d: problems.append(f"dialog: {d.message}"))
        page.on(
            "request", lambda r: None if r.url.startswith(("file:", "data:")) else problems.append(f"request: {r.url}")
        )

    def go(path: Path, fragment: str = "", **options: Any) -> Any:
        context = browser.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        watch(page)
        page.goto(f"file://{path}{fragment}")
        if options.get("java_script_enabled", True):
            page.locator(READY).wait_for(state="attached")
        return page

    yield go
    for context in contexts:
        context.close()
    assert problems == []
