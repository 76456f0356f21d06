"""The IR after each pass, out of what MLIR prints before each of them (`MLIR_ENABLE_DUMP`).

The IR after a pass is what is printed before the next one; what the last pass made is a stage of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from portability.stages.model import Pass

HEAD = re.compile(r"^// -----// (?:\w+ internal )?IR Dump (Before|After):? (\w+).*$", re.MULTILINE)
LOCATION = re.compile(r" loc\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)")  # calls lie in calls
LOCATION_TABLE = re.compile(r"^#loc\d* = .*\n?", re.MULTILINE)
# Where the printed IR ends and other words of the compiler begin.
NOT_IR = re.compile(r"^(?!\s|#|//|module|\}|tt\.|llvm\.|\"|\{-#|builtin)\S.*$", re.MULTILINE)


def read(printed: str) -> tuple[Pass, ...]:
    """Return the passes in what was printed, in order, each with the IR after it."""
    return tuple(_changes(list(_dumps(printed))))


def without_locations(ir: str) -> str:
    """Return MLIR text without its locations, which are half of it."""
    return LOCATION.sub("", LOCATION_TABLE.sub("", ir)).rstrip() + "\n"


def level(ir: str) -> str:
    """Return which stage a module is on its way to: "ttir", "ttgir" or "llir"."""
    if "llvm.func" in ir:
        return "llir"
    return "ttgir" if '"ttg.num-warps"' in ir or "ttg.num-warps" in ir else "ttir"


def _dumps(printed: str) -> Iterator[tuple[str, str, str]]:
    """Yield "Before" or "After", the pass and the module."""
    heads = list(HEAD.finditer(printed))
    for i, head in enumerate(heads):
        end = heads[i + 1].start() if i + 1 < len(heads) else len(printed)
        yield head[1], head[2], without_locations(NOT_IR.sub("", printed[head.end() : end]).strip())


def _changes(dumps: Sequence[tuple[str, str, str]]) -> Iterator[Pass]:
    for i, (when, name, ir) in enumerate(dumps):
        if when == "After":  # a pass that shows its own steps, or one that failed
            yield Pass(name, ir)
            continue
        after = next((later for w, _, later in dumps[i + 1 :] if w == "Before"), "")
        yield Pass(name, after, after != ir)
