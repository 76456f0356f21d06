"""Pictures of the runs: matplotlib's SVG, made part of the page: its colours are the page's own, light or dark."""

from __future__ import annotations

import importlib.util
import io
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from markupsafe import Markup

from portability.site.data import Site

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SVG, XLINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"

# What is drawn in one of these comes out in the page's colour of that name: none of them is drawn for itself.
INK, MUTED, LINE, GROUND = "#010203", "#010204", "#010205", "#010206"
SERIES = tuple(f"#0102{i:02x}" for i in range(16, 24))
EVIDENCE = {e: f"#0103{i:02x}" for i, e in enumerate(("ran", "emulated", "interpreted", "compiled", "lowered"))}
FAIL, DECLARED, OTHER = "#010401", "#010402", "#010403"
COLOURS: Mapping[str, str] = {
    INK: "currentColor",
    MUTED: "var(--muted)",
    LINE: "var(--line)",
    GROUND: "var(--sheet)",
    FAIL: "var(--fail-line)",
    DECLARED: "var(--declared-line)",
    OTHER: "var(--raised)",
    **{colour: f"var(--series-{i})" for i, colour in enumerate(SERIES)},
    **{colour: f"var(--chart-{name})" for name, colour in EVIDENCE.items()},
}
STYLE: Mapping[Any, Any] = {
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "portability",  # the same picture of the same runs
    "text.parse_math": False,  # a name with two dollar signs is a name
    "text.color": INK,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.facecolor": "none",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 10,
    "figure.facecolor": "none",
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "grid.color": LINE,
    "legend.frameon": False,
    "legend.fontsize": 9,
    "font.size": 10,
    "font.sans-serif": ["DejaVu Sans"],
    "hatch.color": GROUND,
    "hatch.linewidth": 1.5,
}


@dataclass(frozen=True)
class Picture:
    """One picture, with what it shows in words."""

    title: str
    caption: str
    svg: Markup


def available() -> bool:
    """Return whether pictures can be drawn here."""
    return importlib.util.find_spec("matplotlib") is not None


def draw(site: Site) -> tuple[Picture, ...]:
    """Return the pictures for which the runs hold something; none where matplotlib is missing."""
    if not available():
        return ()
    import matplotlib as mpl

    from portability.site import charts

    with mpl.rc_context(dict(STYLE)):
        return tuple(_numbered(charts.all_charts(site)))


def _numbered(drawn: Iterable[tuple[str, str, Figure]]) -> Iterator[Picture]:
    for number, (title, caption, figure) in enumerate(drawn):
        yield Picture(title, caption, Markup(inlined(figure, f"chart{number}-", title)))


def inlined(figure: Figure, prefix: str, label: str) -> str:
    """Return a figure as an `svg` element for a page.

    prefix  begins each of its ids, of which a page holds those of several pictures
    label   what it is called where it cannot be seen
    """
    file = io.StringIO()
    figure.savefig(file, format="svg", metadata={"Date": None})
    root = ElementTree.fromstring(file.getvalue())
    for parent in list(root.iter()):
        for child in list(parent):
            # The metadata names outside addresses; the style would be that of the whole page.
            if child.tag in (f"{{{SVG}}}metadata", f"{{{SVG}}}style"):
                parent.remove(child)
    for element in root.iter():
        for name, value in element.attrib.items():
            element.set(name, _attribute(name, value, prefix))
    for name in ("width", "height"):  # the page gives it its room
        del root.attrib[name]
    root.attrib |= {"role": "img", "aria-label": label, "stroke-linejoin": "round"}
    ElementTree.register_namespace("", SVG)
    ElementTree.register_namespace("xlink", XLINK)
    return ElementTree.tostring(root, encoding="unicode")


def _attribute(name: str, value: str, prefix: str) -> str:
    if name == "id":
        return prefix + value
    if name == f"{{{XLINK}}}href":
        return value.replace("#", f"#{prefix}", 1)
    value = value.replace("url(#", f"url(#{prefix}")
    return re.sub(r"#[0-9a-f]{6}\b", lambda found: COLOURS.get(found[0], found[0]), value)
