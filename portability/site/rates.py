"""Rates over size and rooflines: what was timed, against the ceilings that were measured on the same device."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, FuncFormatter, NullFormatter

from portability.merge import Entry
from portability.model import Timing
from portability.site.data import Site
from portability.site.drawing import WIDTH, Chart, add_legend, colours_of, column_name, handles_of, new_figure
from portability.site.pictures import MUTED
from portability.text import clip
from portability.times import is_performance

PANELS = 12  # kernels whose rates are drawn
DEVICES = 4  # rooflines that are drawn
OTHERS = "other kernels"
CEILING = re.compile(r"(?P<value>\d+(?:\.\d+)?) (?P<unit>GB/s|TFLOP/s|TOP/s)$")


@dataclass(frozen=True)
class Point:
    """A stable time of one cell, with what its case's cost model makes of it."""

    kernel: str
    series: str  # device and dtype
    device: str
    bytes: float
    gbps: float
    tflops: float | None
    ceiling: float | None  # in `unit`
    unit: str  # of the ceiling that bounds it
    torch: float | None = None  # the rate of torch's own on the same buffers, as a fraction of this one

    @property
    def intensity(self) -> float:
        """Operations a byte."""
        return 1e3 * (self.tflops or 0.0) / self.gbps


def _points(site: Site) -> list[Point]:
    found = []
    for entry in site.entries:
        t = entry.observation.timing
        if t is not None and is_performance(entry) and t.stable and _positive(t.gbps) and _positive(t.median):
            found.append(_point(site, entry, t))
    return found


def _point(site: Site, entry: Entry, t: Timing) -> Point:
    device = clip(entry.observation.device or column_name(site, site.place(entry.cell)), 40)
    said = CEILING.search(t.ceiling_of)
    gbps = t.gbps or 0.0
    return Point(
        kernel=clip(entry.cell.kernel, 40),
        series=f"{device}, {clip(entry.cell.dtype, 20)}",
        device=device,
        bytes=gbps * t.median * 1e6,
        gbps=gbps,
        tflops=t.tflops if _positive(t.tflops) else None,
        ceiling=float(said["value"]) if said else None,
        unit=said["unit"] if said else "GB/s",
        torch=t.median / t.torch_median if t.torch_median else None,
    )


def _positive(value: float | None) -> bool:
    return value is not None and 0 < value < 1e18


def rates(site: Site) -> Iterator[Chart]:
    """Yield a panel a kernel: its rate over the bytes that it moves, a line a device and dtype, and the ceiling."""
    by_kernel: dict[str, list[Point]] = defaultdict(list)
    for point in _points(site):
        by_kernel[point.kernel].append(point)
    sizes = {kernel: len({p.bytes for p in points}) for kernel, points in by_kernel.items()}
    several = sorted((k for k in by_kernel if sizes[k] > 1), key=lambda k: -sizes[k])  # one size is no line
    kernels = several[:PANELS]
    if not kernels:
        return
    figure = _panels([(kernel, by_kernel[kernel]) for kernel in kernels])
    left_out = len(several) - len(kernels)
    more = f" {left_out} {'kernel' if left_out == 1 else 'kernels'} with fewer sizes left out." if left_out else ""
    caption = (
        "Over the bytes that a launch moves. Dashed: the ceiling measured on that device in the same run. Dotted: "
        f"torch's own on the same buffers.{more}"
    )
    yield "Rate over size", caption, figure


def _panels(kernels: Sequence[tuple[str, Sequence[Point]]], columns: int = 3) -> Figure:
    rows = -(-len(kernels) // columns)
    colours = colours_of(p.series for _, points in kernels for p in points)
    legend = 0.5 + 0.2 * -(-len(colours) // 3)  # inches, three names a line
    height = 2.5 * rows + 0.3 + legend
    figure = Figure(figsize=(WIDTH, height))
    # Placed by hand: the layout engine takes a second for twelve panels.
    figure.subplots_adjust(0.07, legend / height, 0.99, 1 - 0.3 / height, wspace=0.28, hspace=0.45)
    for i, (kernel, points) in enumerate(kernels, 1):
        _rate_panel(figure.add_subplot(rows, columns, i), kernel, points, colours)
    handles, labels = handles_of(figure)
    figure.legend(handles, labels, loc="lower center", ncols=3)
    return figure


def _rate_panel(axes: Axes, kernel: str, points: Sequence[Point], colours: Mapping[str, tuple[str, str]]) -> None:
    operations = any(p.unit != "GB/s" and p.tflops for p in points)
    unit = next((p.unit for p in points if p.unit != "GB/s"), "GB/s") if operations else "GB/s"
    for series in dict.fromkeys(p.series for p in points):
        colour, marker = colours[series]
        here = sorted((p for p in points if p.series == series), key=lambda p: p.bytes)
        here = [p for p in here if not operations or p.tflops]
        rate = [(p.bytes, p.tflops if operations else p.gbps) for p in here]
        theirs = [(x, (y or 0.0) * p.torch) for p, (x, y) in zip(here, rate, strict=True) if p.torch]
        axes.plot([x for x, _ in theirs], [y for _, y in theirs], color=colour, linestyle=":", linewidth=1.3)
        axes.plot(
            [x for x, _ in rate],
            [y or 0.0 for _, y in rate],
            color=colour,
            marker=marker,
            markersize=4,
            linewidth=1.3,
            label=series,
        )
        for ceiling in {p.ceiling for p in here if p.ceiling and (p.unit != "GB/s") is operations}:
            axes.axhline(ceiling, color=colour, linestyle="--", linewidth=1)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(EngFormatter(unit="B"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_ylim(bottom=0)
    axes.set_title(kernel)
    axes.set_ylabel(unit)
    axes.grid(True, which="major")


def rooflines(site: Site) -> Iterator[Chart]:
    """Yield a roofline a device: TFLOP/s over operations a byte, below the ceilings measured there."""
    by_device: dict[str, list[Point]] = defaultdict(list)
    for point in _points(site):
        if point.tflops and point.ceiling:
            by_device[point.device].append(point)
    for device in sorted(by_device, key=lambda d: -len(by_device[d]))[:DEVICES]:
        figure = _roofline(by_device[device])
        if figure is not None:
            caption = (
                "A mark a cell, below the bandwidth of a copy (the slope) and matrix rates (level) measured there."
            )
            yield f"Roofline of {device}", caption, figure


def _roofline(points: Sequence[Point]) -> Figure | None:
    copy = max((p.ceiling or 0.0 for p in points if p.unit == "GB/s"), default=0.0)
    if not copy:
        return None
    matrix = sorted({p.ceiling or 0.0 for p in points if p.unit != "GB/s"})
    figure, axes = new_figure(4.2)
    named = [kernel for kernel, _ in Counter(p.kernel for p in points).most_common(PANELS)]
    colours = colours_of(named)
    for kernel in (*named, OTHERS):
        colour, marker = colours.get(kernel, (MUTED, "."))
        here = [p for p in points if (p.kernel if p.kernel in colours else OTHERS) == kernel]
        if here:
            axes.scatter(
                [p.intensity for p in here],
                [p.tflops or 0.0 for p in here],
                s=26,
                c=colour,
                marker=marker,
                label=kernel,
                linewidths=0,
            )
    lowest = min(p.intensity for p in points) / 2
    highest = max([*(p.intensity for p in points), *(1e3 * m / copy for m in matrix)]) * 2
    knee = 1e3 * matrix[-1] / copy if matrix else highest
    axes.plot([lowest, knee], [copy * lowest / 1e3, copy * knee / 1e3], color=MUTED, linewidth=1.2)
    for rate in matrix:
        axes.plot([1e3 * rate / copy, highest], [rate, rate], color=MUTED, linewidth=1.2, linestyle="--")
        axes.annotate(f"{rate:.0f} TFLOP/s", (highest, rate), ha="right", va="bottom", size=8, color=MUTED)
    axes.annotate(
        f"{copy:.0f} GB/s",
        (lowest, copy * lowest / 1e3),
        ha="left",
        va="bottom",
        size=8,
        color=MUTED,
        xytext=(4, 6),
        textcoords="offset points",
    )
    axes.set(xscale="log", yscale="log", xlabel="operations a byte", ylabel="TFLOP/s")
    for axis in (axes.xaxis, axes.yaxis):  # matplotlib's own labels are formulas
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.set_minor_formatter(NullFormatter())
    axes.grid(True, which="major")
    add_legend(figure, axes)
    return figure
