"""What one check of an adapter comes to. Plain values, carried as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from portability.model import Word

VERSION = 1  # of the JSON form


class Verdict(Word):
    """What a check says."""

    PASS = "pass"
    FAIL = "fail"
    NOT_HERE = "cannot be had here"


@dataclass(frozen=True)
class Result:
    """One check of one target, or of the adapter as a whole."""

    check: str
    verdict: Verdict
    reason: str = ""
    target: str = ""


def result(check: str, problems: Sequence[str], good: str, target: str = "") -> Result:
    """Return a pass with what was seen, or a fail with what is wrong."""
    if problems:
        return Result(check, Verdict.FAIL, "; ".join(dict.fromkeys(problems)), target)
    return Result(check, Verdict.PASS, good, target)


# Name of a check -> what it holds an adapter to; in the order in which they are made.
CHECKS = {
    "contract": "name, targets, families, titles, dtypes and limits are what the contract says, and fit each other",
    "detection": "status() says why, says it twice alike, and touches no device and nothing of the process",
    "crossing": "the adapter, its targets and limits can go to another process",
    "limits": "limits have a source, agree with each other, and what goes past them is refused",
    "blocks": "the block table names kernels, selectors and blocks that exist, and every kernel has all its blocks",
    "opening": "leaving a target puts back what opening it changed, after an error too",
    "recording": "a launch is recorded with its kernel, place, grid and constants; an empty call records none",
    "claimed": "every dtype that is claimed works: loaded, converted, stored",
    "unclaimed": "every dtype that is not claimed is refused",
    "synchronization": "synchronize() returns when what was launched has ended",
    "timing": "times are positive, ordered, and grow with the work; what is no measure of speed says so",
    "memory": "running out of memory is out_of_resources, and the next cell runs",
}
