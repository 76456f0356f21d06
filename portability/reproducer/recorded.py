"""From a recorded launch to a file: a cell of `portability check`, reproduced as one of the matrix is.

What is made smaller is the launch's tiles, where it is compiled: its arguments are another program's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from portability.harness import Harness
from portability.model import Observation, Target, to_json
from portability.record.cases import Launched, infos, launched, names_of
from portability.record.check import learn, observe, recorded_for
from portability.record.model import Call, Recording
from portability.record.tiles import tiles, with_tiles
from portability.reproducer.session import Say, Session
from portability.reproducer.shrink import Attempt, Known, signature
from portability.tomltable import nearest

Found = tuple[Launched, Target, Recording]


def find(harness: Harness, recordings: Sequence[Recording], cell_id: str) -> Found:
    """Return the launch of that cell, its target, and the recording that the target takes it from.

    Raises `ValueError` with the nearest cells.
    """
    learn(harness, [])
    names = names_of(c for r in recordings for c in r.launches)
    known: list[str] = []
    for target in harness.catalogue.targets:
        recording = recorded_for(recordings, target)
        for launch in launched(recording, names):
            if launch.cell(target).id == cell_id:
                return launch, target, recording
            known.append(launch.cell(target).id)
    raise ValueError(f"no cell {cell_id!r} in what was recorded; {nearest(cell_id, known)}")


class RecordedSession(Session):
    """Reproduces one recorded launch on one target."""

    def __init__(self, harness: Harness, found: Found, budget: float, say: Say) -> None:
        self.harness, self.say = harness, say
        self.launch, self.target, self.recording = found
        self.cell = self.launch.cell(self.target)
        (self.case,) = infos([self.launch])
        self.call = self.launch.calls[0]
        self.budget = 0.0 if self.target.evidence.executes else budget  # the grid would have to follow the tiles

    def _start(self) -> Attempt:
        """Of a tuned launch, take the configuration that fails as the launch does."""
        values = "drawn" if self.target.evidence.executes else "own"
        starts = [Attempt(self.cell.dtype, self.cell.sample, tiles(c), values=values) for c in self.launch.calls]
        if not starts[1:]:
            return starts[0]
        whole = signature(observe(self.harness, self.launch, self.target, self.recording))
        for start, call in zip(starts, self.launch.calls, strict=True):
            self.call = call
            if signature(self._observe(start)) == whole:
                return start
        raise ValueError(f"{self.cell.id}: no configuration by itself is {whole[0]}")

    def _observe(self, attempt: Attempt) -> Observation:
        launch = replace(self.launch, calls=(self._called(attempt),))
        return observe(self.harness, launch, self.target, self.recording)

    def _known(self, start: Attempt) -> Known:
        return Known((), {}, False)

    def _subject(self, attempt: Attempt) -> dict[str, Any]:
        recording = replace(self.recording, launches=(), tests=())
        return {"calls": [to_json(self._called(attempt))], "recording": to_json(recording)}

    def _called(self, attempt: Attempt) -> Call:
        return with_tiles(self.call, attempt.blocks)
