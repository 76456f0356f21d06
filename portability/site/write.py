"""Write the page and what lies beside it."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from portability.merge import Merged
from portability.results import write_runs
from portability.site.badge import render_badge
from portability.site.data import Site
from portability.site.page import TITLE, render_page
from portability.site.pictures import draw
from portability.table import Table


def write_site(folder: Path, merged: Merged, table: Table, omit: Collection[str] = (), title: str = TITLE) -> Path:
    """Write the page, its badge and its results into `folder`, and return the page's path.

    merged  the runs
    table   the same, as `report.build` made it
    omit    targets left out
    title   the page's heading

    Raises `OSError` where the folder cannot be written.
    """
    site = Site(merged, omit)
    folder.mkdir(parents=True, exist_ok=True)
    page = folder / "index.html"
    page.write_text(render_page(site, table, draw(site), title), encoding="utf-8", newline="\n")
    (folder / "badge.svg").write_text(render_badge(table), encoding="utf-8", newline="\n")
    write_runs(folder / "results.jsonl", merged.parts())
    return page
