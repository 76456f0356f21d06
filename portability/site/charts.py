"""What the pictures show: coverage, resources against their limits, rates against ceilings, and change over runs."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, FuncFormatter, NullFormatter

from portability.merge import Entry, shown
from portability.model import Outcome, Timing
from portability.site.data import Site
from portability.site.pictures import DECLARED, EVIDENCE, FAIL, MUTED, SERIES
from portability.table import View, refused, view_of
from portability.text import clip
from portability.times import is_performance

Chart = tuple[str, str, Figure]  # title, caption, picture

WIDTH = 9.5  # inches
PANELS = 12  # kernels whose rates are drawn
DEVICES = 4  # rooflines that are drawn
OTHERS = "other kernels"
MARKERS = "osD^vP*X"
CEILING = re.compile(r"(?P<value>\d+(?:\.\d+)?) (?P<unit>GB/s|TFLOP/s|TOP/s)$")


def all_charts(site: Site) -> Iterator[Chart]:
    """Yield each chart for which the runs hold something."""
    yield from coverage(site)
    yield from resources(site)
    yield from rates(site)
    yield from rooflines(site)
    yield from change(site)


# ------------------------------------------------------------------------------------------------ coverage

# Each part of a bar: what it is called, its colour, its hatch, and what falls into it. The first that fits counts.
Part = tuple[str, str, str, Callable[[Entry], bool]]
HATCHES = {"ran": "", "emulated": "xx", "interpreted": "//", "compiled": "..", "lowered": "\\\\"}


def _passes_as(evidence: str) -> Callable[[Entry], bool]:
    return lambda e: e.observation.outcome is Outcome.PASS and e.observation.evidence == evidence


PARTS: tuple[Part, ...] = (
    ("fails", FAIL, "", lambda e: e.verdict.standing.fails),
    *((f"passes, {name}", colour, HATCHES[name], _passes_as(name)) for name, colour in EVIDENCE.items()),
    ("does not pass, as declared or undecided", DECLARED, "++", lambda e: e.tried),
)


def coverage(site: Site) -> Iterator[Chart]:
    """Yield a bar a target for each view: what part of its cells passes, and by what evidence."""
    titles = {
        View.KERNELS: "Kernels by target",
        View.API: "Coverage of the language by target",
        View.PACKAGES: "Packages by target",
    }
    views = {case.name: view_of(case) for case in site.cases}
    for view, title in titles.items():
        bars: dict[int, Counter[str]] = defaultdict(Counter)
        for entry in _shown(site):
            if views[entry.cell.kernel] is view:
                bars[site.place(entry.cell)].update(_part(entry))
        if any(bars.values()):
            caption = "Of the cells that could be tried, and are not refused as claimed. Right: how many of them pass."
            yield title, caption, _bars({_column_name(site, i): bars[i] for i in sorted(bars) if bars[i]})


def _part(entry: Entry) -> list[str]:
    """The part of a bar that the entry is in, if it is in one."""
    if not entry.tried or refused(entry):
        return []
    return [next(name for name, _, _, fits in PARTS if fits(entry))]


def _bars(bars: Mapping[str, Counter[str]]) -> Figure:
    figure, axes = _figure(1.3 + 0.32 * len(bars))
    totals = [sum(parts.values()) for parts in bars.values()]
    left = [0.0] * len(bars)
    for name, colour, hatch, _ in (*PARTS[1:], PARTS[0]):  # what fails stands at the end
        sizes = [100 * parts[name] / total for parts, total in zip(bars.values(), totals, strict=True)]
        if any(sizes):
            axes.barh(range(len(bars)), sizes, left=left, color=colour, hatch=hatch, label=name, height=0.7)
            left = [a + b for a, b in zip(left, sizes, strict=True)]
    for i, (parts, total) in enumerate(zip(bars.values(), totals, strict=True)):
        passed = sum(n for name, n in parts.items() if name.startswith("passes"))
        axes.annotate(f"{passed:,}/{total:,}", (100, i), xytext=(5, 0), textcoords="offset points", va="center", size=9)
    axes.set_yticks(range(len(bars)), list(bars))
    axes.invert_yaxis()
    axes.set_xlim(0, 100)
    axes.set_xlabel("% of cells")
    axes.xaxis.grid(True)
    axes.set_axisbelow(True)
    _legend(figure, axes)
    return figure


# ----------------------------------------------------------------------------------------------- resources


def resources(site: Site) -> Iterator[Chart]:
    """Yield a dot a kernel and target: the largest part of the target's shared memory that a program of it takes."""
    most: dict[tuple[int, str], float] = {}
    kernels = {c.name for c in site.cases if not c.group}  # a probe is too small to fill anything
    for entry in _shown(site):
        for binary in entry.observation.resources if entry.cell.kernel in kernels else ():
            if binary.shared is not None and binary.shared_limit:
                key = (site.place(entry.cell), entry.cell.kernel)
                most[key] = max(most.get(key, 0.0), binary.shared / binary.shared_limit)
    if not any(most.values()):
        return
    columns = sorted({column for column, _ in most})
    figure, axes = _figure(1.2 + 0.32 * len(columns))
    for over, colour, marker in ((False, SERIES[0], "o"), (True, FAIL, "X")):
        dots = [(100 * part, columns.index(column)) for (column, _), part in most.items() if (part > 1) is over]
        axes.scatter(
            [x for x, _ in dots], [y for _, y in dots], s=22, c=colour, marker=marker, alpha=0.75, linewidths=0
        )
    for column, kernel, part in _fullest(most):
        axes.annotate(
            clip(kernel, 24),
            (100 * part, columns.index(column)),
            xytext=(5, 4),
            textcoords="offset points",
            size=8,
            color=MUTED,
        )
    axes.axvline(100, color=FAIL, linewidth=1.2, linestyle="--")
    axes.set_yticks(range(len(columns)), [_column_name(site, column) for column in columns])
    axes.invert_yaxis()
    axes.set_xlim(left=0)
    axes.margins(x=0.12)
    axes.set_xlabel("shared memory, % of what a program may use")
    axes.xaxis.grid(True)
    yield (
        "Shared memory against its limit",
        "A dot a kernel: the most that a program of it takes; right of the line it does not fit. The fullest is named.",
        figure,
    )


def _fullest(most: Mapping[tuple[int, str], float]) -> Iterator[tuple[int, str, float]]:
    for column in {column for column, _ in most}:
        part, kernel = max((part, kernel) for (c, kernel), part in most.items() if c == column)
        if part > 0:
            yield column, kernel, part


# --------------------------------------------------------------------------------------------------- times


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
    device = clip(entry.observation.device or _column_name(site, site.place(entry.cell)), 40)
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
    caption = f"Over the bytes that a launch moves. Dashed: the ceiling measured on that device in the same run.{more}"
    yield "Rate over size", caption, figure


def _panels(kernels: Sequence[tuple[str, Sequence[Point]]], columns: int = 3) -> Figure:
    rows = -(-len(kernels) // columns)
    colours = _colours(p.series for _, points in kernels for p in points)
    legend = 0.5 + 0.2 * -(-len(colours) // 3)  # inches, three names a line
    height = 2.5 * rows + 0.3 + legend
    figure = Figure(figsize=(WIDTH, height))
    # Placed by hand: the layout engine takes a second for twelve panels.
    figure.subplots_adjust(0.07, legend / height, 0.99, 1 - 0.3 / height, wspace=0.28, hspace=0.45)
    for i, (kernel, points) in enumerate(kernels, 1):
        _rate_panel(figure.add_subplot(rows, columns, i), kernel, points, colours)
    handles, labels = _handles(figure)
    figure.legend(handles, labels, loc="lower center", ncols=3)
    return figure


def _rate_panel(axes: Axes, kernel: str, points: Sequence[Point], colours: Mapping[str, tuple[str, str]]) -> None:
    operations = any(p.unit != "GB/s" and p.tflops for p in points)
    unit = next((p.unit for p in points if p.unit != "GB/s"), "GB/s") if operations else "GB/s"
    for series in dict.fromkeys(p.series for p in points):
        colour, marker = colours[series]
        here = sorted((p for p in points if p.series == series), key=lambda p: p.bytes)
        rate = [(p.bytes, p.tflops if operations else p.gbps) for p in here if not operations or p.tflops]
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
    figure, axes = _figure(4.2)
    named = [kernel for kernel, _ in Counter(p.kernel for p in points).most_common(PANELS)]
    colours = _colours(named)
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
    _legend(figure, axes)
    return figure


# -------------------------------------------------------------------------------------------------- change


def change(site: Site) -> Iterator[Chart]:
    """Yield how many cells pass and fail in each run, the oldest first, where there are several runs."""
    runs = sorted(site.merged.runs, key=lambda run: run.header.provenance.started)
    if len(runs) < 2:
        return
    bars: dict[str, Counter[str]] = {}
    for i, run in enumerate(runs, 1):
        p = run.header.provenance
        words = (f"{i}.", p.started[:10], p.host, p.triton and f"Triton {p.triton}")
        entries = (Entry(o, v, run) for o, v in zip(run.observations, run.verdicts(), strict=True))
        bars[clip(" ".join(filter(None, words)), 44)] = Counter(part for e in entries for part in _part(e))
    caption = "Of the cells that each run could try, the oldest run first; right, how many of them pass."
    yield "Change over runs", caption, _bars({name: parts for name, parts in bars.items() if parts})


# -------------------------------------------------------------------------------------------------- pieces


def _shown(site: Site) -> list[Entry]:
    """One entry a cell: the one that the table shows."""
    cells: dict[object, list[Entry]] = defaultdict(list)
    for entry in site.entries:
        cells[entry.cell].append(entry)
    return [shown(entries) for entries in cells.values()]


def _column_name(site: Site, column: int) -> str:
    c = site.columns[column]
    return clip(f"{c.title} ({c.target})" if c.title else c.target, 40)


def _figure(height: float) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    return figure, figure.add_subplot()


def _legend(figure: Figure, axes: Axes) -> None:
    handles, labels = axes.get_legend_handles_labels()
    if handles:
        figure.legend(handles, labels, loc="outside lower center", ncols=3)


def _handles(figure: Figure) -> tuple[list[Artist], list[str]]:
    found = {
        label: handle for axes in figure.axes for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    return list(found.values()), list(found)


def _colours(names: Iterable[str]) -> Mapping[str, tuple[str, str]]:
    """A colour and a marker a name: more names than colours are told apart by the marker."""
    pairs = ((SERIES[i % len(SERIES)], MARKERS[(i + i // len(SERIES)) % len(MARKERS)]) for i in range(1000))
    return dict(zip(dict.fromkeys(names), cycle(pairs), strict=False))
