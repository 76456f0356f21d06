"""What a port comes to, and the entries that it puts into a block table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from portability import tuning
from portability.backend import read_blocks
from portability.harness import Harness
from portability.model import Outcome
from portability.porting import advice
from portability.porting.model import Report, Verdict


def judged(report: Report) -> Report:
    """Return the report with its verdict, and with the changes that it asks for."""
    changes = list(_changes(report))
    if changes:
        return replace(report, verdict=Verdict.CHANGES, changes=tuple(changes))
    counted = [a for a in report.attempts if a.claimed and not a.fails_on_both]
    failing = [a for a in counted if not a.moves]
    if not failing or (not any(c.blocks for c in report.choices) and all(a.outcome is Outcome.PASS for a in failing)):
        return replace(report, verdict=Verdict.AS_IT_IS)
    return replace(report, verdict=Verdict.BLOCKS)


def _changes(report: Report) -> Iterator[str]:
    for choice in report.choices:
        if not choice.blocks and choice.why:
            yield choice.why
    if report.attempts and not any(a.claimed for a in report.attempts):
        yield f"no dtype that it has is claimed on {report.destination.id}: {', '.join(report.unclaimed)}"
    counted = [a for a in report.attempts if a.claimed]
    if counted and all(a.fails_on_both for a in counted):
        yield f"{counted[0].line or report.file}: {counted[0].detail}, on the source too"
    yield from advice.changes(report.lint, any(not a.moves for a in counted))


def write(report: Report, harness: Harness) -> Report:
    """Put the entries of the choices into the destination's block table; measured ones are never replaced by a model's.

    Raises `ValueError` where the table is no TOML.
    """
    table = harness.adapters[report.destination.backend].block_table()
    written, notes = [], list(report.notes)
    for choice in report.choices:
        for entry in choice.entries:
            name = f'[{report.kernel}."{entry.selector}"]'
            kept = str(read_blocks(table).get(report.kernel, {}).get(entry.selector, {}).get("found", ""))
            if kept.startswith("measured") and not choice.found.startswith("measured"):
                notes.append(f"{table.name}: {name} is kept, since it was {kept}")
                continue
            tuning.write_entry(table, report.kernel, entry.selector, entry.text)
            written.append(name)
    return replace(report, written=f"{table.name}: {', '.join(written)}" if written else "", notes=tuple(notes))
