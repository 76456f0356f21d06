"""The page: one HTML file that holds its style, its script, its data and its pictures, and asks for nothing else."""

from __future__ import annotations

import base64
import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from importlib.resources import files
from urllib.parse import urlencode

from markupsafe import Markup

from portability import __version__
from portability.merge import Entry
from portability.model import Evidence, Standing
from portability.render import TITLES
from portability.site.data import Site, ascii_json, packed
from portability.site.pictures import Picture
from portability.site.templating import render_template
from portability.table import Table, View, view_of
from portability.text import MOST, clean

TITLE = "Triton kernels: what runs where"
# In the order in which each uses what those before it define; together they are one module.
SCRIPTS = ("data", "state", "squares", "dom", "grid", "filters", "times", "panel", "main")
MEANINGS = {
    Evidence.RAN: "on the target's own hardware",
    Evidence.EMULATED: "the target's code, on a CPU",
    Evidence.INTERPRETED: "by Triton's interpreter",
    Evidence.COMPILED: "to the target's binary, never run",
    Evidence.LOWERED: "part of the way to a binary",
    Evidence.NONE: "nothing here could try",
}


def render_page(site: Site, table: Table, pictures: Sequence[Picture] = (), title: str = TITLE) -> str:
    """Return the page.

    site      the runs, for the script
    table     the same runs, for what is shown without it
    pictures  what the charts are
    """
    script = _script()
    failing = [e for e in table.cells if e.verdict.standing.fails]
    return render_template(
        "page.html.j2",
        title=clean(title),
        subtitle=_subtitle(site),
        table=table,
        most=MOST,
        titles=TITLES,
        cells=f"{len(table.cells):,} {'cell' if len(table.cells) == 1 else 'cells'}",
        failing=f"{len(failing):,}" if failing else "",
        failing_views=_failing_views(site, failing),
        views=_views(site, table, pictures),
        meanings=[(str(e), meaning) for e, meaning in MEANINGS.items()],
        pictures=pictures,
        policy=_policy(script),
        style=Markup(_static("page.css")),
        script=Markup(script),
        index=Markup(ascii_json(site.index())),
        details=packed(site.details()),
        version=__version__,
    )


def _static(name: str) -> str:
    return files("portability.site").joinpath("static", name).read_text(encoding="utf-8")


def _script() -> str:
    return "\n".join(_static(f"{name}.js") for name in SCRIPTS)


def _policy(script: str) -> str:
    """No script but this one runs, and nothing is asked of any machine, whatever a results file holds."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    rules = (
        "default-src 'none'",
        f"script-src 'sha256-{digest}'",
        "style-src 'unsafe-inline'",  # styles stand on the elements of the pictures, where no hash can allow them
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
    )
    return "; ".join(rules)


def _views(site: Site, table: Table, pictures: Sequence[Picture]) -> list[tuple[str, str, int | None]]:
    labels = {View.KERNELS: "Kernels", View.API: "Language", View.PACKAGES: "Packages"}
    shown = [g.view for g in table.grids if g.rows]
    views: list[tuple[str, str, int | None]] = [
        (str(view), label, sum(view_of(case) is view for case in site.cases))
        for view, label in labels.items()
        if view in shown
    ]
    if len(table.times) > 1:
        views.append(("times", "Times", len(table.times) - 1))
    if pictures:
        views.append(("charts", "Charts", None))
    return [*views, ("notes", "Notes", None)]


def _failing_views(site: Site, failing: Sequence[Entry]) -> list[tuple[str, str, str]]:
    """Of each view that has some: what it is called, how many fail there, and the address that shows them."""
    labels = {View.KERNELS: "the kernels", View.API: "the language", View.PACKAGES: "the packages"}
    views = {case.name: view_of(case) for case in site.cases}
    counts = Counter(views[e.cell.kernel] for e in failing)
    standings = [("standing", str(s)) for s in Standing if s.fails]
    return [
        (labels[view], f"{counts[view]:,}", "#" + urlencode([("view", str(view)), *standings]))
        for view in View
        if counts[view]
    ]


def _subtitle(site: Site) -> str:
    """Where it comes from, in a line; the notes say it in full."""
    runs = [run.header.provenance for run in site.merged.runs]
    parts = (
        f"{len(runs)} runs" if len(runs) > 1 else "1 run",
        _listed("", (p.host for p in runs)),
        _listed("Triton ", sorted(e.triton for e in site.entries)),
        _listed("commit ", (p.commit for p in runs)),
        max((p.started[:10] for p in runs), default=""),
    )
    return clean(" · ".join(p for p in parts if p))


def _listed(what: str, names: Iterable[str], most: int = 4) -> str:
    found = [name for name in dict.fromkeys(names) if name]
    more = f" and {len(found) - most} more" if len(found) > most else ""
    return f"{what}{', '.join(found[:most])}{more}" if found else ""
