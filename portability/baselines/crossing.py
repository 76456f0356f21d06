"""From a kernel to the language: which names it uses, and on which target each of them works, at which dtypes."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from portability.baselines.answers import Answer, Refusal, known_names, look_up, newest_of
from portability.baselines.files import FOLDER
from portability.model import Evidence
from portability.tomltable import nearest
from portability.uses import Uses, uses

KERNELS = FOLDER.parent.parent
WIDTH = 100


@dataclass(frozen=True)
class Place:
    """What one target says of the names that a kernel uses."""

    target: str
    evidence: Evidence  # the weakest
    works: tuple[str, ...]  # names that work there at every dtype that a probe has
    partly: Mapping[str, tuple[str, ...]]  # name -> dtypes that do not
    refused: tuple[str, ...]  # names that work there at no dtype
    emulated: Mapping[str, tuple[str, ...]]  # name -> dtypes


@dataclass(frozen=True)
class Crossing:
    """A kernel, what it uses, and where that works."""

    kernel: str
    file: str
    names: tuple[str, ...]
    unknown: tuple[str, ...]  # names that no probe is about: modules, attributes
    helpers: tuple[str, ...]
    unresolved: tuple[str, ...]
    places: tuple[Place, ...]


def crossing(kernel: str, targets: Sequence[str], root: Path) -> Crossing:
    """Return what a kernel uses and where that works.

    kernel  the name of a bundled case, "file.py" or "file.py:function"; `root` is where a file is looked for
    Raises `LookupError` with the choices for a name that is nothing, `ValueError` for a file that is no Python.
    """
    file, function = _source(kernel, root)
    try:
        found: Uses = uses(file.read_text(encoding="utf-8"), function, _modules(file))
    except (SyntaxError, UnicodeDecodeError) as error:
        raise ValueError(f"{kernel}: cannot be read as Python: {error}") from None
    if not found.names and not found.operators:
        raise LookupError(f"{kernel}: no kernel of Triton's in it")
    used = (*found.names, *(f"tensor.__{o}__" if not o.startswith("tensor.") else o for o in found.operators))
    known = known_names()
    names = tuple(n for n in used if n in known)
    answers = {name: look_up(name) for name in names if not name.startswith("tensor.__")}
    places = tuple(_place(target, answers) for target in newest_of(targets))
    unknown = tuple(n for n in used if n not in known)
    return Crossing(kernel, file.name, tuple(answers), unknown, found.helpers, found.unresolved, places)


def _place(target: str, answers: Mapping[str, Answer]) -> Place:
    said = {name: found for name, answer in answers.items() if (found := _by_dtype(answer, target))}
    works = {n: tuple(d for d, (_, how) in found.items() if isinstance(how, str)) for n, found in said.items()}
    refused = {n: tuple(d for d, (_, how) in found.items() if isinstance(how, Refusal)) for n, found in said.items()}
    emulated = {n: tuple(d for d, (_, how) in found.items() if how == "emulated") for n, found in said.items()}
    return Place(
        target,
        min((e for found in said.values() for e, _ in found.values()), key=lambda e: e.rank, default=Evidence.NONE),
        tuple(n for n in said if works[n] and not refused[n]),
        {n: refused[n] for n in said if works[n] and refused[n]},
        tuple(n for n in said if not works[n]),
        {n: dtypes for n, dtypes in emulated.items() if dtypes},
    )


def _by_dtype(answer: Answer, target: str) -> dict[str, tuple[Evidence, str | Refusal]]:
    """Return what a target says of each dtype: how it works, or why not; without the language's own contract.

    A dtype that the name's own probe has not is taken from the first that has it, as float8 of `tl.dot` is.
    """
    found: dict[str, tuple[Evidence, str | Refusal]] = {}
    further = [answer.further[probe] for probe in sorted(answer.further, key=len)]
    for rows in (answer.rows, *further):
        for row in (r for r in rows if r.target == target):
            said: Mapping[str, str | Refusal] = {**row.works, **row.refused}
            found = {**{d: (row.evidence, what) for d, what in said.items()}, **found}
    return {d: f for d, f in found.items() if not (isinstance(f[1], Refusal) and f[1].contract)}


# ------------------------------------------------------------------------------------------------- sources


def _source(kernel: str, root: Path) -> tuple[Path, str]:
    """Return the file that a kernel is in, and the function that is asked for, empty for all of the file."""
    name, _, function = kernel.partition(":")
    if name.endswith(".py"):
        if not (root / name).is_file():
            raise LookupError(f"no file {name!r} here")
        return root / name, function
    found = dict(_bundled())
    if name not in found:
        raise LookupError(f"no bundled kernel {name!r}; {nearest(name, found)}")
    return found[name], function


def _bundled() -> Iterator[tuple[str, Path]]:
    """Yield the cases of the bundled kernels with their files, and the files' own names, read without importing."""
    for file in sorted(KERNELS.glob("*.py")):
        if not file.stem.startswith("_"):
            yield file.stem, file
            yield from ((name, file) for name in _cases(ast.parse(file.read_text(encoding="utf-8"))))


def _cases(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            for keyword in node.keywords:
                if keyword.arg == "name" and isinstance(keyword.value, ast.Constant):
                    yield str(keyword.value.value)


def _modules(file: Path) -> Mapping[str, str]:
    """Return the text of the modules beside a file, under the names by which kernels import them."""
    beside = {f.stem: f.read_text("utf-8", errors="replace") for f in file.parent.glob("*.py") if f != file}
    package = "portability.kernels."
    return {**beside, **{package + stem: text for stem, text in beside.items()}}


# ---------------------------------------------------------------------------------------------------- words


def crossing_text(crossing: Crossing) -> str:
    """Return it for a terminal."""
    through = f", through {', '.join(crossing.helpers)}" if crossing.helpers else ""
    lines = [f"{crossing.kernel} ({crossing.file}) uses {len(crossing.names)} names{through}:"]
    lines += [f"  {', '.join(crossing.names)}"]
    lines += [f"  {_place_text(place, len(crossing.names))}" for place in crossing.places]
    lines += [f"  not followed: {', '.join(crossing.unresolved)}"] if crossing.unresolved else []
    pieces = (textwrap.wrap(line, WIDTH, subsequent_indent="    ", break_on_hyphens=False) for line in lines)
    return "\n".join(piece for wrapped in pieces for piece in wrapped)


def _place_text(p: Place, total: int) -> str:
    told = len(p.works) + len(p.partly) + len(p.refused)
    some = [*p.partly, *p.refused]
    every = f"{len(p.works)} of {total} work at every dtype"
    text = f"{p.target}: {p.evidence}, {f'all {total} work' if told == total and not some else every}"
    text += "".join(f"; {n} not for {', '.join(d)}" for n, d in p.partly.items())
    text += f"; refused: {', '.join(p.refused)}" if p.refused else ""
    text += "".join(f"; {n} is emulated for {', '.join(d)}" for n, d in p.emulated.items())
    return text + (f"; not recorded: {total - told}" if told < total else "")
