"""What a job of GitHub Actions shows: annotations at the lines that fail, and a summary on the job's page."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from portability.merge import Entry
from portability.render import markdown
from portability.table import Table
from portability.text import clean

MOST = 10  # annotations of a kind that are shown of one step; further ones are dropped without a word
ROOM = 1024 * 1024  # bytes that a step's summary may have
LINE = re.compile(r"(?P<file>[^:]+):(?P<line>\d+)")  # "kernels/softmax.py:41"


def workflow_commands(table: Table) -> str:
    """Return workflow commands: an error for each fault, a warning for each finding, the gravest first.

    Cells that fail alike at one line share a command. What does not fit in what is shown is counted in the last.
    """
    failing = sorted((e for e in table.cells if e.verdict.standing.fails), key=_gravity)
    commands = [*_capped("error", _grouped(failing)), *_capped("warning", _findings(table.cells))]
    return "".join(f"{command}\n" for command in commands)


def summary(table: Table) -> str:
    """Return Markdown for `$GITHUB_STEP_SUMMARY`: the whole table, without its times or grids where it has no room."""
    for shorter in (table, replace(table, times=()), replace(table, times=(), grids=())):
        text = markdown(shorter)
        if len(text.encode()) <= ROOM:
            break
    left_out = [name for name in ("times", "grids") if len(getattr(shorter, name)) < len(getattr(table, name))]
    return text + (f"\nLeft out, for want of room here: {' and '.join(left_out)}.\n" if left_out else "")


Said = tuple[str, str, str]  # line, title, message


def _gravity(entry: Entry) -> tuple[int, str]:
    return -entry.observation.outcome.severity, entry.cell.id


def _grouped(entries: Iterable[Entry]) -> list[Said]:
    alike: dict[Said, list[str]] = {}
    for entry in entries:
        o, verdict = entry.observation, entry.verdict
        first = o.detail.split("\n", 1)[0] or verdict.why
        key = (o.line, f"{entry.cell.kernel}: {o.outcome} ({verdict.standing})", first)
        alike.setdefault(key, []).append(f"{entry.cell.id} ({o.evidence})")
    return [(line, title, f"{message}\n{_listed(cells)}") for (line, title, message), cells in alike.items()]


def _findings(entries: Iterable[Entry]) -> list[Said]:
    alike: dict[Said, dict[str, None]] = {}
    for entry in entries:
        for w in entry.observation.warnings:
            targets = alike.setdefault((w.line, w.code, w.message), {})
            targets.update(dict.fromkeys(w.targets or (entry.cell.target,)))
    return [(line, code, f"{message}\n{_listed(list(targets))}") for (line, code, message), targets in alike.items()]


def _listed(names: Sequence[str], most: int = 5) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _capped(level: str, said: Sequence[Said]) -> Iterator[str]:
    shown = said if len(said) <= MOST else said[: MOST - 1]
    for line, title, message in shown:
        yield _command(level, _place(line) | {"title": title}, message)
    if len(shown) < len(said):
        yield _command(
            level, {"title": f"{len(said) - len(shown)} more"}, "The job's summary and the results hold all of them."
        )


def _place(line: str) -> dict[str, str]:
    """Where in the project it is. An absolute path leads nowhere there."""
    found = LINE.fullmatch(line)
    return found.groupdict() if found and not line.startswith("/") else {}


def _command(level: str, properties: Mapping[str, str], message: str) -> str:
    made = ",".join(f"{name}={_escaped(value, property=True)}" for name, value in properties.items())
    return f"::{level} {made}::{_escaped(message)}"


def _escaped(text: str, *, property: bool = False) -> str:
    """Return text that ends no command and begins none."""
    made = "%0A".join(clean(line).replace("%", "%25") for line in text.split("\n"))
    return made.replace(":", "%3A").replace(",", "%2C") if property else made
