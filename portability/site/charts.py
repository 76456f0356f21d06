"""The charts: coverage, resources against their limits, change over runs, and those of `rates`."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping

from matplotlib.figure import Figure

from portability.merge import Entry
from portability.model import Outcome
from portability.site.data import Site
from portability.site.drawing import Chart, add_legend, column_name, new_figure, shown_cells
from portability.site.pictures import DECLARED, EVIDENCE, FAIL, MUTED, SERIES
from portability.site.rates import rates, rooflines
from portability.table import View, view_of
from portability.text import clip


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
        for entry in shown_cells(site):
            if views[entry.cell.kernel] is view:
                bars[site.place(entry.cell)].update(_part(site, entry))
        if any(bars.values()):
            caption = "Of the cells that could be tried, and are not refused as claimed. Right: how many of them pass."
            yield title, caption, _bars({column_name(site, i): bars[i] for i in sorted(bars) if bars[i]})


def _part(site: Site, entry: Entry) -> list[str]:
    """The part of a bar that the entry is in, if it is in one."""
    if not entry.tried or site.refused(entry):
        return []
    return [next(name for name, _, _, fits in PARTS if fits(entry))]


def _bars(bars: Mapping[str, Counter[str]]) -> Figure:
    figure, axes = new_figure(1.3 + 0.32 * len(bars))
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
    add_legend(figure, axes)
    return figure


# ----------------------------------------------------------------------------------------------- resources


def resources(site: Site) -> Iterator[Chart]:
    """Yield a dot a kernel and target: the largest part of the target's shared memory that a program of it takes."""
    most: dict[tuple[int, str], float] = {}
    kernels = {c.name for c in site.cases if not c.group}  # a probe is too small to fill anything
    for entry in shown_cells(site):
        for binary in entry.observation.resources if entry.cell.kernel in kernels else ():
            if binary.shared is not None and binary.shared_limit:
                key = (site.place(entry.cell), entry.cell.kernel)
                most[key] = max(most.get(key, 0.0), binary.shared / binary.shared_limit)
    if not any(most.values()):
        return
    columns = sorted({column for column, _ in most})
    figure, axes = new_figure(1.2 + 0.32 * len(columns))
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
    axes.set_yticks(range(len(columns)), [column_name(site, column) for column in columns])
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
        bars[clip(" ".join(filter(None, words)), 44)] = Counter(part for e in entries for part in _part(site, e))
    caption = "Of the cells that each run could try, the oldest run first; right, how many of them pass."
    yield "Change over runs", caption, _bars({name: parts for name, parts in bars.items() if parts})
