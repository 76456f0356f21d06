"""A badge for a README: how many targets pass, by what evidence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from portability.model import Evidence
from portability.site.templating import render_template
from portability.table import Square, Table

LABEL = "Triton kernels"
# Green says that something ran: what only compiled is not known to work.
FAILS, RAN, NOT_RUN, NOTHING = "#b93d00", "#00684b", "#3b5b7c", "#5f6670"
GLYPH = 6.6  # width of a character of Verdana at 11 pixels, on average; the text is fitted to it


def render_badge(table: Table) -> str:
    """Return the badge as SVG."""
    message, colour = summary(table)
    left, right = (round(len(text) * GLYPH + 12) for text in (LABEL, message))
    return render_template("badge.svg.j2", label=LABEL, message=message, colour=colour, left=left, right=right)


def summary(table: Table) -> tuple[str, str]:
    """Return what the badge says, and its colour: targets that fail, else those that pass by their weakest evidence."""
    tried = [s for s in _totals(table) if s.total > s.unavailable]
    failing = sum(s.fails for s in tried)
    if failing:
        return f"{failing} of {len(tried)} {_targets(len(tried))} {'fails' if failing == 1 else 'fail'}", FAILS
    if not tried:
        return "nothing tried", NOTHING
    counts = Counter(s.evidence for s in tried)
    words = ", ".join(f"{counts[e]} {e}" for e in Evidence if counts[e])
    return f"{words}", RAN if counts[Evidence.RAN] else NOT_RUN


def _totals(table: Table) -> Iterator[Square]:
    """The columns of the first grid that is there: the kernels', or that of the language."""
    yield from next((g.totals for g in table.grids if g.rows), ())


def _targets(n: int) -> str:
    return "target" if n == 1 else "targets"
