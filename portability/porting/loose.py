"""Porting a file that launches kernels itself: what `portability check` says of both targets, held against each other.

Its blocks are written in it, so that none are searched; what does not fit is a change of the file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from portability.checks.differences import DECIDED
from portability.checks.model import Fault, FileReport, Seen, TargetReport
from portability.checks.session import Checker
from portability.checks.session import Request as Check
from portability.facts import facts_of
from portability.matrix import MatrixError
from portability.model import Evidence, Outcome, Target
from portability.porting import advice
from portability.porting.ends import End, needs
from portability.porting.model import Attempt, Report, Verdict
from portability.porting.session import Request
from portability.porting.special import EMULATED
from portability.porting.subject import Subject
from portability.tomltable import nearest

INTERPRETER = "interpreter"


def port_file(subject: Subject, request: Request, folder: Path, say: Callable[[str], None]) -> Report:
    """Return the report of a loose file. Raises `ValueError` where it cannot be read, `MatrixError` for a target."""
    assert subject.file is not None
    names = tuple(dict.fromkeys((request.source, request.destination, INTERPRETER)))
    checker = Checker(Check(names), folder, subject.root, subject.matrix)
    try:
        by_id = {t.id: t for t in reversed(checker.targets)}
        if request.source == request.destination:
            raise MatrixError(f"--from and --to are both {request.source!r}: nothing is moved")
        for name in (request.source, request.destination):
            if name not in by_id:
                raise MatrixError(f"{name!r} is no target here; {nearest(name, by_id)}")
        found = checker.check(subject.file, say)
        adapter = checker.adapters[by_id[request.destination].backend]
    finally:
        checker.close()
    if found.unreadable:
        raise ValueError(f"{found.path}: {found.unreadable}")
    destination = by_id[request.destination]
    end = End(destination, adapter, facts_of(adapter, destination.id))
    return _report(found, by_id[request.source], destination, tuple(needs(end)))


def _report(found: FileReport, source: Target, destination: Target, needed: tuple[str, ...]) -> Report:
    there = [f for f in found.faults if _concerns(f, destination.id)]
    known = {f for f in there if _concerns(f, source.id)}
    rules = [replace(f, everywhere=f in known) for f in there if f.seen is Seen.SOURCE]
    failures = [f for f in there if f.outcome is not None and f.seen is not Seen.SOURCE]
    differing = [f for f in there if f.outcome is None and f.seen is not Seen.SOURCE]
    report = Report(
        found.path, source, destination,
        needs=needed,
        attempts=tuple(_attempts(found, failures, known, destination)),
        missing=tuple(f for f in differing if f.code in EMULATED),
        lint=tuple(rules),
        silent=tuple(f for f in differing if f.code not in EMULATED and (f not in known or f.code in DECIDED)),
        file=found.path,
    )  # fmt: skip
    return _judged(report, failures, known)


def _concerns(fault: Fault, target: str) -> bool:
    return fault.everywhere or target in fault.targets or (fault.outcome is None and fault.code in DECIDED)


def _attempts(found: FileReport, failures: list[Fault], known: set[Fault], destination: Target) -> Iterator[Attempt]:
    reached: TargetReport = next(t for t in found.targets if t.target == destination.id)
    if not failures:
        yield Attempt("run", "as written", outcome=reached.outcome, evidence=reached.evidence, detail=reached.detail)
    for fault in failures:
        outcome = fault.outcome or Outcome.HARNESS_ERROR
        yield Attempt(
            "run", "as written", source=outcome if fault in known else Outcome.PASS, outcome=outcome,
            evidence=reached.evidence, detail=f"{fault.code}: {fault.message.splitlines()[0]}", line=fault.line,
            advice=advice.advise(outcome, fault.message),
        )  # fmt: skip


def _judged(report: Report, failures: list[Fault], known: set[Fault]) -> Report:
    failing = bool(failures) or report.destination.evidence is Evidence.NONE
    changes = [*(_change(f, f in known) for f in failures), *advice.changes(report.lint, failing)]
    if changes:
        return replace(report, verdict=Verdict.CHANGES, changes=tuple(dict.fromkeys(changes)))
    if report.destination.evidence is Evidence.NONE:
        note = f"nothing was tried on {report.destination.id}: {report.destination.why}; {report.destination.remedy}"
        return replace(report, notes=(*report.notes, note))
    note = "its blocks are written in the file, so that no others were searched"
    return replace(report, verdict=Verdict.AS_IT_IS, notes=(*report.notes, note))


def _change(fault: Fault, both: bool) -> str:
    place, said = (
        (f"{fault.line}: " if fault.line else ""),
        advice.advise(fault.outcome or Outcome.WRONG, fault.message),
    )
    first = fault.message.splitlines()[0].rstrip(".")
    return f"{place}{fault.code}: {first}{', on the source too' if both else ''}{f': {said}' if said else ''}"
