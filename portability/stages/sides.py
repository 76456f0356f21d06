"""Two compiled kernels beside each other: what differs in words, and one stage's text line by line."""

from __future__ import annotations

import difflib
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase

from portability.stages.facts import facts
from portability.stages.model import Compiled
from portability.text import clean

GUTTER = 3  # columns between two sides
NUMBERED = re.compile(
    r"[%$](?:\w+)|\bv\[?\d+(?::\d+\])?|\bs\[?\d+(?::\d+\])?|#\w+"
)  # values, registers, names of layouts
# Stages that are the same step for different targets; a pattern is of what other adapters add.
SAME_STEP = (("ptx", "amdgcn", "*asm"), ("ttgir", "ttadapter"), ("sass", "amdgcn", "*asm"), ("cubin", "hsaco", "*bin"))


def counterpart(stage: str, made: Compiled) -> str:
    """Return the stage of `made` that is the same step as `stage`, "" where there is none."""
    if stage in made.names:
        return stage
    steps = [step for step in SAME_STEP if any(fnmatchcase(stage, p) for p in step)]
    return next((s for step in steps for p in step for s in made.names if fnmatchcase(s, p)), "")


def pairs(left: Sequence[Compiled], right: Sequence[Compiled]) -> list[tuple[Compiled | None, Compiled | None]]:
    """Return the kernels of two sides by label; what one side has not stands alone."""
    others = {c.label: c for c in right}
    made: list[tuple[Compiled | None, Compiled | None]] = [(c, others.pop(c.label, None)) for c in left]
    return made + [(None, c) for c in others.values()]


def summary(columns: Mapping[str, Compiled | None], width: int) -> str:
    """Return the facts of one or two compiled kernels as a table; "≠" marks what differs."""
    found = [facts(c) if c is not None else {} for c in columns.values()]
    names = list(dict.fromkeys(name for f in found for name in f))
    label = max(map(len, names), default=0)
    each = max(20, (width - label - GUTTER * len(found)) // len(found))
    lines = [_row(" " * label, [[head] for head in columns], each, " ")]
    for name in names:
        cells = [f.get(name, ["-"]) for f in found]
        mark = "≠" if len(found) > 1 and cells[0] != cells[1] else " "
        lines.append(_row(name.ljust(label), cells, each, mark))
    return "\n".join(lines) + "\n"


def _row(name: str, cells: Sequence[Sequence[str]], each: int, mark: str) -> str:
    wrapped = [[w for line in cell for w in _wrapped(line, each)] for cell in cells]
    lines = []
    for i in range(max(map(len, wrapped))):
        parts = [(w[i] if i < len(w) else "").ljust(each) for w in wrapped]
        between = f" {mark if i == 0 else ' '} "
        lines.append(f"{name if i == 0 else ' ' * len(name)}   {between.join(parts)}".rstrip())
    return "\n".join(lines)


def _wrapped(line: str, width: int) -> list[str]:
    return textwrap.wrap(clean(line), width, subsequent_indent="  ", break_on_hyphens=False) or [""]


def beside(left: str, right: str, width: int) -> Iterator[str]:
    """Yield two texts beside each other in `width` columns, lines that are equal but for their numbers on one row.

    Between them stands "|" where they differ, "<" and ">" where one has no counterpart. A long line is cut short.
    """
    each = max(20, (width - GUTTER) // 2)
    a, b = left.splitlines(), right.splitlines()
    left_keys, right_keys = ([NUMBERED.sub("%", line.strip()) for line in text] for text in (a, b))
    for tag, i1, i2, j1, j2 in difflib.SequenceMatcher(None, left_keys, right_keys).get_opcodes():
        for k in range(max(i2 - i1, j2 - j1)):
            x = a[i1 + k] if i1 + k < i2 else None
            y = b[j1 + k] if j1 + k < j2 else None
            mark = " " if tag == "equal" else "<" if y is None else ">" if x is None else "|"
            yield f"{_cut(x or '', each)} {mark} {_cut(y or '', each).rstrip()}".rstrip()


def _cut(line: str, width: int) -> str:
    line = clean(line.expandtabs(4))
    return (line if len(line) <= width else line[: width - 1] + "…").ljust(width)
