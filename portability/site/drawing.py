"""What charts are made of: figures, legends, colours, and how the runs' cells and columns are called in them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import cycle

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from portability.merge import Entry, shown
from portability.site.data import Site
from portability.site.pictures import SERIES
from portability.text import clip

Chart = tuple[str, str, Figure]  # title, caption, picture

WIDTH = 9.5  # inches
MARKERS = "osD^vP*X"


def shown_cells(site: Site) -> list[Entry]:
    """Return one entry a cell: the one that the table shows."""
    cells: dict[object, list[Entry]] = defaultdict(list)
    for entry in site.entries:
        cells[entry.cell].append(entry)
    return [shown(entries) for entries in cells.values()]


def column_name(site: Site, column: int) -> str:
    """Return what a chart calls the column of this number."""
    c = site.columns[column]
    return clip(f"{c.title} ({c.target})" if c.title else c.target, 40)


def new_figure(height: float) -> tuple[Figure, Axes]:
    """Return a figure of the common width with one plot; `height` in inches."""
    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    return figure, figure.add_subplot()


def add_legend(figure: Figure, axes: Axes) -> None:
    """Put what the plot's parts are called below it."""
    handles, labels = axes.get_legend_handles_labels()
    if handles:
        figure.legend(handles, labels, loc="outside lower center", ncols=3)


def handles_of(figure: Figure) -> tuple[list[Artist], list[str]]:
    """Return each name in the figure's plots once, with a part that has it."""
    found = {
        label: handle for axes in figure.axes for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    return list(found.values()), list(found)


def colours_of(names: Iterable[str]) -> Mapping[str, tuple[str, str]]:
    """Return a colour and a marker a name; more names than colours are told apart by the marker."""
    pairs = ((SERIES[i % len(SERIES)], MARKERS[(i + i // len(SERIES)) % len(MARKERS)]) for i in range(1000))
    return dict(zip(dict.fromkeys(names), cycle(pairs), strict=False))
