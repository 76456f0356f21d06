"""The four steps of a port, taken through a harness: environment, what moves, what is special, the blocks that fit."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from portability.backend import look_up_blocks
from portability.catalogue import Catalogue
from portability.checks.model import Fault, Seen
from portability.harness import Harness
from portability.kernel import Blocks
from portability.matrix import MatrixError
from portability.model import CaseInfo, Cell, Evidence, Observation, Outcome, from_json, to_json
from portability.pool import RunnerDiedError, RunnerTimedOutError
from portability.porting import advice, special
from portability.porting.ends import End, ends, needs
from portability.porting.fitting import Fitting
from portability.porting.model import Attempt, Reading, Report
from portability.porting.special import Pair
from portability.porting.subject import Subject
from portability.porting.verdict import judged
from portability.tomltable import nearest

SPILLS = 128  # bytes a thread more than on the source: less is a handful of registers at the edge of a loop

Say = Callable[[str], None]


@dataclass(frozen=True)
class Request:
    """What is asked of a port."""

    source: str
    destination: str
    dtypes: tuple[str, ...] = ()  # empty means every dtype of the case
    most: int = 16  # configurations that are tried for one dtype; 0 leaves the search out
    names: bool = True  # whether the language's names are looked up
    quick: bool = False  # whether the quick sample stands for the others


class Porting:
    """Moves the cases of one subject from one target to another; nothing is written."""

    def __init__(self, harness: Harness, subject: Subject, request: Request, say: Say = lambda _: None) -> None:
        self.harness, self.subject, self.request, self.say = harness, subject, request, say
        self.source, self.destination = ends(harness, request.source, request.destination)

    def reports(self) -> list[Report]:
        """Return one report for each case. Raises `ValueError` for a kernel that is none."""
        catalogue = self.harness.catalogue
        names = self.subject.cases(catalogue)
        return [_Move(self, catalogue.case(name), catalogue).report() for name in names]


class _Move:
    """One case on its way."""

    def __init__(self, porting: Porting, case: CaseInfo, catalogue: Catalogue) -> None:
        self.harness, self.say, self.request = porting.harness, porting.say, porting.request
        self.source, self.destination = porting.source, porting.destination
        self.root, self.case, self.catalogue = porting.harness.root, case, catalogue
        self.names: tuple[str, ...] = ()
        self.pairs: list[Pair] = []
        self.aligned: dict[str, int] = {}  # sample -> arguments that are multiples of 16
        self.warnings: list[Fault] = []

    def report(self) -> Report:
        """Take the four steps."""
        source, destination = self.source.target, self.destination.target
        begun = Report(self.case.name, source, destination, needs=tuple(needs(self.destination)), file=self.case.file)
        attempts = self._attempts()
        unclaimed = tuple(dict.fromkeys(a.dtype for a in attempts if not a.claimed))
        begun = replace(begun, attempts=tuple(attempts), unclaimed=unclaimed)
        begun = self._special(begun)
        if destination.evidence is Evidence.NONE:
            note = f"nothing was tried on {destination.id}: {destination.why}; {destination.remedy}"
            return replace(begun, notes=(*begun.notes, note))
        self.say(f"{self.case.name}: the blocks that fit {destination.id}")
        fitting = Fitting(
            self.harness, self.case, self.destination, self.request.most, self.most_aligned, self.request.quick
        )
        choices = fitting.choices(attempts)
        return judged(replace(begun, choices=tuple(choices)))

    # ---------------------------------------------------------------------------------------------- what moves

    def _attempts(self) -> list[Attempt]:
        """Try every sample of the first dtype, and of the others the quick and the most aligned one: a kernel is
        compiled anew for arguments that are multiples of 16, and needs more memory for them.
        """
        dtypes = [d for d in self.case.dtypes if not self.request.dtypes or d in self.request.dtypes]
        unknown = [d for d in self.request.dtypes if d not in self.case.dtypes]
        if unknown:
            raise MatrixError(
                f"--dtype: {self.case.name} has no {unknown[0]!r}; {nearest(unknown[0], self.case.dtypes)}"
            )
        dtypes = [d for d in dtypes if self.source.adapter.claims(self.source.target.id, d)] or dtypes
        first = next((d for d in dtypes if self._claims(d)), None)
        made = [self._attempt(d, s) for d in dtypes if d == first for s in self._samples(d)]
        for dtype in (d for d in dtypes if d != first):
            made += [self._attempt(dtype, s) for s in self._two(dtype)]
        return sorted(made, key=lambda a: dtypes.index(a.dtype))

    def _two(self, dtype: str) -> list[str]:
        """Return the quick sample and, where the dtype is claimed, the one with the most aligned arguments."""
        names = self._samples(dtype)
        aligned = [n for n in names if n == self.most_aligned] if self._claims(dtype) else []
        return list(dict.fromkeys([names[0], *aligned]))

    def _claims(self, dtype: str) -> bool:
        return self.destination.adapter.claims(self.destination.target.id, dtype)

    @property
    def most_aligned(self) -> str:
        """The sample whose launches have the most arguments that are multiples of 16; "" before any was compiled."""
        return max(self.aligned, key=lambda name: self.aligned[name], default="")

    def _samples(self, dtype: str) -> list[str]:
        """Return the samples that are not only timed, the quick one first."""
        usable = [s for s in self.case.samples if not s.dtypes or dtype in s.dtypes]
        plain = [s for s in usable if not s.bench] or usable
        names = [s.name for s in sorted(plain, key=lambda s: not s.quick)]
        return names[:1] if self.request.quick else names

    def _attempt(self, dtype: str, sample: str) -> Attempt:
        source = self.source.target
        self.say(f"{self.case.name}: {dtype} {sample}")
        default = Blocks(dict(self.case.blocks))
        resolved = look_up_blocks(
            self.source.adapter, self.case.name, source.id, dtype, default, self.harness.matrix.blocks
        )
        there, theirs = self._read(self.destination, dtype, sample, resolved.blocks, resolved.source)
        first = not any(p.dtype == dtype for p in self.pairs)
        here: Observation | None = None
        ours: list[Reading] = []
        if first or there.outcome is not Outcome.PASS:  # a further sample that moves says nothing of the source
            here, ours = self._read(self.source, dtype, sample, resolved.blocks, resolved.source)
        self.aligned.setdefault(sample, max((r.aligned for r in (*theirs, *ours)), default=0))
        if first:
            self.pairs.append(Pair(dtype, tuple(ours), tuple(theirs)))
        spills = [max((r.made.spills for r in side), default=0) for side in (theirs, ours)]
        spilled = spills[0] - spills[1] if first else 0
        outcome, detail = there.outcome, (there.detail.splitlines() or [""])[0]
        return Attempt(
            dtype, sample, dict(resolved.blocks), resolved.source,
            here.outcome if here is not None else Outcome.UNAVAILABLE, outcome, there.evidence,
            self._claims(dtype), spilled if spilled >= SPILLS else 0,
            detail, there.line, advice.advise(outcome, there.detail) if outcome is not Outcome.PASS else "",
        )  # fmt: skip

    def _read(
        self, end: End, dtype: str, sample: str, blocks: Blocks, blocks_from: str
    ) -> tuple[Observation, list[Reading]]:
        """Return what a cell did, and what was made of its launches."""
        target = end.target
        cell = Cell(self.case.name, dtype, sample, target.id, target.environment)
        lost = Observation(cell, target.evidence, Outcome.UNAVAILABLE, "open", target.why)
        if target.evidence is Evidence.NONE:
            return lost, []
        request: dict[str, Any] = {
            "op": "read", "cell": to_json(cell), "target": to_json(target), "blocks": dict(blocks),
            "blocks_from": blocks_from, "options": self.harness.options,
        }  # fmt: skip
        try:
            reply = self.harness.ask(target.environment, request, self.harness.limit(cell, target))
        except RunnerTimedOutError as error:
            return replace(lost, outcome=Outcome.TIMEOUT, detail=str(error), line=error.line), []
        except RunnerDiedError as error:
            return replace(lost, outcome=Outcome.CRASH, detail=str(error)), []
        if "failure" in reply:
            raise RuntimeError(f"{cell.id}: {reply['failure']}\n{reply['traceback']}")
        observation = from_json(Observation, reply["observation"])
        self.names = tuple(sorted({*self.names, *reply["names"]}))
        self._warn(observation)
        return observation, [from_json(Reading, r) for r in reply["readings"]]

    def _warn(self, observation: Observation) -> None:
        """Keep what the interpreter foretells of the destination and not of the source."""
        for w in observation.warnings:
            bites, known = (
                any(fnmatchcase(t, p) for p in w.targets) for t in (self.destination.target.id, self.source.target.id)
            )
            fault = Fault(w.code, w.message, Seen.INTERPRETED, w.line, (self.destination.target.id,))
            if bites and not known and fault not in self.warnings:
                self.warnings.append(fault)

    # ------------------------------------------------------------------------------------------ what is special

    def _special(self, report: Report) -> Report:
        source, destination = self.source, self.destination
        self.say(f"{self.case.name}: names, layouts and silent differences")
        dtypes = list(dict.fromkeys(a.dtype for a in report.attempts if a.claimed))
        asked = self.names if self.request.names else ()
        refused = list(special.special_names(self.harness, asked, dtypes, source, destination))
        compared = special.compared(self.pairs, source, destination)
        silent = [f for f in compared if f.code not in special.EMULATED]
        silent += special.silent(self.pairs, dtypes, source, destination)
        file = self.root / self.case.file if (self.root / self.case.file).is_file() else _bundled(self.case.file)
        return replace(
            report,
            names=self.names,
            missing=(*refused, *(f for f in compared if f.code in special.EMULATED)),
            layouts=tuple(dict.fromkeys(special.layouts(self.pairs))),
            lint=tuple(special.lint([file], source, destination, self.root)) if file is not None else (),
            silent=(*silent, *self.warnings),
        )


def _bundled(file: str) -> Path | None:
    """Return the path of a bundled kernel's file, which is named relative to the package's parent."""
    found = Path(__file__).resolve().parent.parent.parent / file
    return found if found.is_file() else None


def in_folder(folder: Path) -> AbstractContextManager[None]:
    """Work in `folder` meanwhile: runners import a project's modules from the folder that they are started in."""
    return contextlib.chdir(folder)


def harness_for(subject: Subject, temporary: Path) -> Harness:
    """Return a harness of the subject's project; to be made, and used, within `in_folder(subject.root)`."""
    return Harness(subject.matrix, temporary, subject.root, {"timing": True})
