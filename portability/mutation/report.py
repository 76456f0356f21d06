"""Verdicts -> tables, the score, and the block between README's markers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from portability.mutation.edits import Mutant
from portability.mutation.trial import State, Verdict

BEGIN, END = "<!-- mutation -->", "<!-- /mutation -->"
FILE = "equivalent_mutants.toml"  # beside the kernel files


class EquivalentError(ValueError):
    """An entry of `equivalent_mutants.toml` is not as it must be."""


class Equivalents:
    """The mutants that cannot be told apart, each with its reason, of every folder of kernels.

    [[equivalent]]
    file = "softmax.py"
    function = "softmax_kernel"
    kind = "other-changed"
    before = "0.0"          # the code that is changed, as the report shows it
    nth = 1                 # which of several such, from 0; left out: all of them
    reason = "…"
    """

    def __init__(self, folders: Sequence[Path]) -> None:
        self._entries: list[Mapping[str, Any]] = []
        self._used: set[int] = set()
        for path in sorted({f / FILE for f in folders}):
            if path.exists():
                self._entries += _read(path)

    def reason(self, mutant: Mutant) -> str:
        """Return why a mutant cannot be told apart, "" where nothing says so."""
        for i, entry in enumerate(self._entries):
            named = {
                "file": mutant.file.name,
                "function": mutant.function,
                "kind": mutant.kind,
                "before": mutant.before,
            }
            if all(entry[k] == v for k, v in named.items()) and entry.get("nth", mutant.nth) == mutant.nth:
                self._used.add(i)
                return str(entry["reason"])
        return ""

    def unused(self, files: set[str]) -> list[str]:
        """Return the entries about `files` that no mutant fits any more."""
        return [
            f"{FILE}: {e['file']} {e['function']}: {e['kind']}: {e['before']}: no such mutant"
            for i, e in enumerate(self._entries) if i not in self._used and e["file"] in files
        ]  # fmt: skip


def _read(path: Path) -> list[Mapping[str, Any]]:
    import tomllib

    try:
        entries = tomllib.loads(path.read_text()).get("equivalent", [])
    except tomllib.TOMLDecodeError as error:
        raise EquivalentError(f"{path.name}: {error}") from None
    for i, entry in enumerate(entries, 1):
        missing = [k for k in ("file", "function", "kind", "before", "reason") if not entry.get(k)]
        if missing:
            raise EquivalentError(f"{path.name}: [[equivalent]] {i}: needs {', '.join(missing)}")
    return list(entries)


def score(verdicts: Sequence[Verdict]) -> str:
    """Return "412 of 415 mutants that can be told apart are caught (99.3 %)"."""
    caught, survived = (sum(v.state is s for v in verdicts) for s in (State.CAUGHT, State.SURVIVED))
    share = 100 * caught / (caught + survived) if caught + survived else 0.0
    return f"{caught} of {caught + survived} mutants that can be told apart are caught ({share:.1f} %)"


def by_kind(verdicts: Sequence[Verdict]) -> list[tuple[str, int, int, int, int]]:
    """Return rows of kind, caught, survived, equivalent and invalid."""
    return _rows(verdicts, lambda v: v.mutant.kind)


def by_file(verdicts: Sequence[Verdict]) -> list[tuple[str, int, int, int, int]]:
    """The same by file."""
    return _rows(verdicts, lambda v: v.mutant.file.name)


def _rows(verdicts: Sequence[Verdict], key: Any) -> list[tuple[str, int, int, int, int]]:
    names = sorted({key(v) for v in verdicts})
    count = {(key(v), v.state): 0 for v in verdicts}
    for v in verdicts:
        count[key(v), v.state] += 1
    states = (State.CAUGHT, State.SURVIVED, State.EQUIVALENT, State.INVALID)
    return [(name, *(count.get((name, s), 0) for s in states)) for name in names]


HEADERS = ("", "caught", "survived", "equivalent", "invalid")


def text(verdicts: Sequence[Verdict], every: bool) -> str:
    """Return the report for a terminal: with `every`, each mutant and the cell that caught it."""
    from tabulate import tabulate

    parts = [tabulate(by_file(verdicts), headers=HEADERS), tabulate(by_kind(verdicts), headers=HEADERS)]
    if every:
        parts.append("\n".join(_line(v) for v in verdicts))
    survivors = [v for v in verdicts if v.state is State.SURVIVED]
    if survivors:
        parts.append("survived:\n" + "\n".join(f"  {v.mutant.name} ({v.cells} cells)" for v in survivors))
    return "\n\n".join([*parts, score(verdicts)]) + "\n"


def _line(v: Verdict) -> str:
    told = f"{v.cell} {v.outcome}: {v.detail}" if v.cell else v.detail
    return f"{v.state}: {v.mutant.name}{': ' + told if told else ''}"


def json_text(verdicts: Sequence[Verdict]) -> str:
    """One object: `version`, `score`, `mutants`."""
    mutants = [
        {
            "file": v.mutant.file.name, "function": v.mutant.function, "line": v.mutant.line, "kind": v.mutant.kind,
            "before": v.mutant.before, "after": v.mutant.after, "nth": v.mutant.nth,
            "state": v.state.value, "cell": v.cell, "outcome": v.outcome, "detail": v.detail, "cells": v.cells,
        }
        for v in verdicts
    ]  # fmt: skip
    return json.dumps({"version": 1, "score": score(verdicts), "mutants": mutants}, indent=1) + "\n"


def block(verdicts: Sequence[Verdict]) -> str:
    """Return what stands between README's markers: the score, and by kind of mistake."""
    from tabulate import tabulate

    table = tabulate(by_kind(verdicts), headers=("mistake", *HEADERS[1:]), tablefmt="github")
    return f"{score(verdicts)}.\n\n{table}\n"


def embedded(text: str, made: str, name: str) -> str:
    """Return `text` with the block between its markers. Raises `ValueError` unless each is there once."""
    if text.count(BEGIN) != 1 or text.count(END) != 1 or text.index(BEGIN) > text.index(END):
        raise ValueError(f"{name}: needs {BEGIN} and after it {END}, once each")
    before, after = text[: text.index(BEGIN)], text[text.index(END) + len(END) :]
    return f"{before}{BEGIN}\n\n{made}\n{END}{after}"
