"""The table of times: a figure only where it is stable, and beside it what it means on that device."""

from __future__ import annotations

from collections.abc import Collection

from portability.merge import Entry, Merged
from portability.model import Timing
from portability.table import Order, View, view_of

HEAD = ("kernel", "dtype", "sample", "target", "median", "spread", "rate", "torch", "of ceiling", "ceiling")
NONE = "-"


def times(merged: Merged, views: Collection[View] = tuple(View)) -> tuple[tuple[str, ...], ...]:
    """Return the heading and a row a timed cell and device, in the order of the cases; nothing if no cell was timed.

    What an interpreter took is no speed: it stays in the results, and has no row here.
    """
    cases = {c.name: c for c in merged.cases if view_of(c) in views}
    order = Order(list(cases.values()), ("kernel", "dtype", "sample"))
    timed = [e for e in merged.entries if e.cell.kernel in cases and is_performance(e)]
    timed.sort(key=lambda e: order((e.cell.kernel, e.cell.dtype, e.cell.sample)))
    devices: dict[str, set[str]] = {}
    for entry in timed:
        devices.setdefault(entry.cell.target, set()).add(entry.observation.device)
    rows = tuple(_row(e, several=len(devices[e.cell.target]) > 1) for e in timed)
    return (HEAD, *rows) if rows else ()


def is_performance(entry: Entry) -> bool:
    """Return whether the entry was timed where time means something."""
    return entry.observation.timing is not None and entry.observation.timing.performance


def _row(entry: Entry, several: bool) -> tuple[str, ...]:
    cell, timing = entry.cell, entry.observation.timing
    assert timing is not None  # `times` takes only those with one
    target = f"{cell.target} ({entry.observation.device})" if several else cell.target
    return (cell.kernel, cell.dtype, cell.sample, target, *figures(timing))


def figures(timing: Timing) -> tuple[str, str, str, str, str, str]:
    """Return median, spread, rate, ratio to torch (above 1: faster), fraction of the ceiling, and that ceiling.

    An unstable time is no figure, and an interpreter's is no measure of performance: neither is shown with a rate.
    """
    spread = f"{100 * timing.spread:.0f} %"
    if not timing.stable:
        return ("unstable", spread, NONE, NONE, NONE, NONE)
    if not timing.performance:
        return (duration(timing.median), spread, "no performance", NONE, NONE, NONE)
    ratio = f"{timing.torch_median / timing.median:.2f}x" if timing.torch_median and timing.median > 0 else NONE
    fraction = NONE if timing.ceiling is None else f"{100 * timing.ceiling:.0f} %"
    return (duration(timing.median), spread, _rate(timing), ratio, fraction, timing.ceiling_of or NONE)


def duration(milliseconds: float) -> str:
    """Return a duration with three digits and the unit that suits it: "812 us", "1.25 ms"."""
    for unit, factor in (("s", 1e-3), ("ms", 1.0), ("us", 1e3)):
        value = milliseconds * factor
        if value >= 1 or unit == "us":
            return f"{value:.3g} {unit}" if value < 999.5 else f"{value:.0f} {unit}"
    raise AssertionError("the last unit always returns")


def _rate(timing: Timing) -> str:
    if timing.tflops is not None and not timing.ceiling_of.startswith("copy"):
        return f"{timing.tflops:.3g} TFLOP/s" if timing.tflops < 1000 else f"{timing.tflops:.0f} TFLOP/s"
    return NONE if timing.gbps is None else f"{timing.gbps:.0f} GB/s"
