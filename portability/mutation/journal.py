"""Verdicts in a file, so that a long run can be interrupted, and what has not changed is not run again."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from portability.mutation.edits import Mutant
from portability.mutation.trial import State, Verdict


class Journal:
    """JSON lines, one a verdict, by the digest of the mutant's whole source. Without a path it keeps nothing."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._known: dict[str, dict[str, str]] = {}
        if path is not None and path.exists():
            for line in path.read_text().splitlines():
                entry = json.loads(line)
                self._known[entry["mutant"]] = entry

    def known(self, mutant: Mutant) -> Verdict | None:
        """Return the verdict of an earlier run; one that survived is run again."""
        entry = self._known.get(_digest(mutant))
        if entry is None or entry["state"] == State.SURVIVED.value:
            return None
        return Verdict(mutant, State(entry["state"]), entry["cell"], entry["outcome"], entry["detail"])

    def add(self, verdict: Verdict) -> None:
        """Append one verdict."""
        if self._path is None:
            return
        entry = {
            "mutant": _digest(verdict.mutant), "name": verdict.mutant.name, "state": verdict.state.value,
            "cell": verdict.cell, "outcome": verdict.outcome, "detail": verdict.detail,
        }  # fmt: skip
        with self._path.open("a") as file:
            file.write(json.dumps(entry) + "\n")


def _digest(mutant: Mutant) -> str:
    return hashlib.sha256(f"{mutant.file.name}\n{mutant.source}".encode()).hexdigest()[:24]
