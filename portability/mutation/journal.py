"""Verdicts in a file: an interrupted run goes on, what has not changed is not run again, pages are made of it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from portability.mutation.edits import Mutant
from portability.mutation.trial import State, Verdict


@dataclass(frozen=True)
class Entry:
    """One verdict as it is kept: what a page tells of a mutant, without its source."""

    mutant: str  # the digest of its code
    file: str
    function: str
    kind: str
    line: int
    before: str
    after: str
    nth: int
    state: str
    cell: str = ""
    outcome: str = ""
    detail: str = ""
    cells: int = 0


class Journal:
    """JSON lines, one a verdict, by the digest of the mutant's code. Without a path it keeps nothing."""

    def __init__(self, path: Path | None) -> None:
        """Read what is there. Raises `ValueError` naming the line that is no verdict."""
        self._path = path
        self._known = {e.mutant: e for e in read_entries(path)} if path is not None and path.exists() else {}

    def known(self, mutant: Mutant, survivors: bool = False) -> Verdict | None:
        """Return the verdict of an earlier run; one that survived is run again, unless `survivors` are asked for."""
        entry = self._known.get(mutant.digest)
        standing = {State.CAUGHT.value, State.INVALID.value, *([State.SURVIVED.value] if survivors else [])}
        if entry is None or entry.state not in standing:
            return None
        return Verdict(mutant, State(entry.state), entry.cell, entry.outcome, entry.detail, entry.cells)

    def add(self, verdict: Verdict) -> None:
        """Append one verdict."""
        if self._path is None:
            return
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a") as file:
            file.write(_text(entry_of(verdict)))

    def replace(self, verdicts: Sequence[Verdict]) -> None:
        """Let these alone stand in the file: what is no more a mutant goes."""
        if self._path is not None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._path.write_text("".join(_text(entry_of(v)) for v in verdicts))


def entry_of(verdict: Verdict) -> Entry:
    """Return what is kept of a verdict."""
    m = verdict.mutant
    told = (verdict.cell, verdict.outcome, verdict.detail, verdict.cells)
    return Entry(
        m.digest, m.file.name, m.function, m.kind, m.line, m.before, m.after, m.nth, verdict.state.value, *told
    )


def read_entries(path: Path) -> list[Entry]:
    """Return the verdicts in a file, in its order. Raises `ValueError` naming the line that is none."""
    found = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        try:
            entry = Entry(**json.loads(line))
            State(entry.state)
        except (ValueError, TypeError) as error:
            raise ValueError(f"{path}:{number}: no verdict of `portability mutate`: {error}") from None
        found.append(entry)
    return found


def _text(entry: Entry) -> str:
    """One line; what is empty is left out."""
    kept = {k: v for k, v in vars(entry).items() if v not in ("", 0) or k in ("before", "after", "nth")}
    return json.dumps(kept, ensure_ascii=False) + "\n"
