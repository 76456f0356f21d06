"""Verdicts -> tables, the score, and the blocks between the markers of a page."""

from __future__ import annotations

import json
import textwrap
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from portability.mutation.edits import Mutant, shown
from portability.mutation.journal import Entry
from portability.mutation.trial import State
from portability.pages import between

BEGIN, END = "<!-- {} -->", "<!-- /{} -->"
BLOCKS = ("mutation", "mutants")  # names of what may stand between markers: the score, and what was told of whom
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


def score(entries: Sequence[Entry]) -> str:
    """Return "412 of 415 mutants that can be told apart are caught (99.3 %)"."""
    caught, survived = (sum(e.state == s.value for e in entries) for s in (State.CAUGHT, State.SURVIVED))
    share = 100 * caught / (caught + survived) if caught + survived else 0.0
    untried = sum(e.state == State.UNTRIED.value for e in entries)
    left = f"; {untried} are not tried yet" if untried else ""
    return f"{caught} of {caught + survived} mutants that can be told apart are caught ({share:.1f} %){left}"


def by_kind(entries: Sequence[Entry]) -> list[tuple[str, int, int, int, int, int]]:
    """Return rows of kind, caught, survived, equivalent, invalid and untried."""
    return _rows(entries, lambda e: e.kind)


def by_file(entries: Sequence[Entry]) -> list[tuple[str, int, int, int, int, int]]:
    """The same by file."""
    return _rows(entries, lambda e: e.file)


def _rows(entries: Sequence[Entry], key: Callable[[Entry], str]) -> list[Any]:
    count = Counter((key(e), e.state) for e in entries)
    states = (State.CAUGHT, State.SURVIVED, State.EQUIVALENT, State.INVALID, State.UNTRIED)
    return [(name, *(count[name, s.value] for s in states)) for name in sorted({key(e) for e in entries})]


HEADERS = ("", "caught", "survived", "equivalent", "invalid", "untried")


def text(entries: Sequence[Entry], every: bool) -> str:
    """Return the report for a terminal: with `every`, each mutant and the cell that caught it."""
    from tabulate import tabulate

    parts = [tabulate(by_file(entries), headers=HEADERS), tabulate(by_kind(entries), headers=HEADERS)]
    if every:
        parts.append("\n".join(_line(e) for e in entries))
    survivors = [e for e in entries if e.state == State.SURVIVED.value]
    if survivors:
        parts.append("survived:\n" + "\n".join(f"  {_name(e)} ({e.cells} cells)" for e in survivors))
    return "\n\n".join([*parts, score(entries)]) + "\n"


def _line(e: Entry) -> str:
    told = f"{e.cell} {e.outcome}: {e.detail}" if e.cell else e.detail
    return f"{e.state}: {_name(e)}{': ' + told if told else ''}"


def _name(e: Entry) -> str:
    return shown(e.file, e.line, e.function, e.kind, e.before, e.after)


def json_text(entries: Sequence[Entry]) -> str:
    """One object: `version`, `score`, `mutants`."""
    return json.dumps({"version": 1, "score": score(entries), "mutants": [vars(e) for e in entries]}, indent=1) + "\n"


def blocks(entries: Sequence[Entry]) -> Mapping[str, str]:
    """Return what stands between the markers of a page, by name.

    `mutation`: the score, and by kind of mistake. `mutants`: by file, what told, and what cannot be told, with why.
    """
    from tabulate import tabulate

    kinds = tabulate(by_kind(entries), headers=("mistake", *HEADERS[1:]), tablefmt="github")
    files = tabulate(by_file(entries), headers=("file", *HEADERS[1:]), tablefmt="github")
    outcomes = Counter(e.outcome for e in entries if e.state == State.CAUGHT.value)
    told = tabulate(outcomes.most_common(), headers=("told by outcome", "mutants"), tablefmt="github")
    parts = [files, told, _argued(entries), _survived(entries)]
    return {"mutation": f"{score(entries)}.\n\n{kinds}\n", "mutants": "\n\n".join(filter(None, parts)) + "\n"}


def _argued(entries: Sequence[Entry]) -> str:
    """Mutants that compute the same as the original, one line for each reason."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for e in entries:
        if e.state == State.EQUIVALENT.value:
            place = f"`{e.function}` {e.kind} {_code(e)}"
            reasons.setdefault((e.file, e.detail), []).append(place)
    lines = [f"- {file}: {'; '.join(dict.fromkeys(places))}. {why}" for (file, why), places in reasons.items()]
    return "\n".join(["Equivalent, and why:\n", *lines]) if lines else ""


def _survived(entries: Sequence[Entry]) -> str:
    lines = [f"- {e.file}: `{e.function}` {e.kind} {_code(e)}" for e in entries if e.state == State.SURVIVED.value]
    return "\n".join(["Survived:\n", *lines]) if lines else ""


def _code(e: Entry) -> str:
    before, after = (textwrap.shorten(t.replace("`", "'"), 80, placeholder=" …") for t in (e.before, e.after))
    return f"`{before}` → `{after}`"


def embedded(page: str, made: Mapping[str, str], name: str) -> str:
    """Return `page` with each block between its markers, where it has them.

    Raises `ValueError` where it has none, or one marker without the other.
    """
    found = False
    for block, content in made.items():
        begin, end = BEGIN.format(block), END.format(block)
        if begin not in page and end not in page:
            continue
        page, found = between(page, begin, end, content, name), True
    if not found:
        raise ValueError(f"{name}: needs {' or '.join(BEGIN.format(b) for b in made)}, and its end")
    return page
