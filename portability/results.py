"""Runs as files: one JSON Lines file a run, written as it goes on, and read without trust.

    {"format": "portability-results", "version": 1, "run": …, "provenance": …, "targets": …, "cases": …, …}
    {"cell": {…}, "evidence": "compiled", "outcome": "pass", …}      one line an observation, as it comes
    {"finished": "2026-11-03T12:00:00+00:00", "counts": {…}}         missing from a run that was interrupted

A header holds all that judging needs (what is declared, what the adapters claim), so that a file is judged anywhere
as the run was. Files of several runs may be joined: that is what `merge` writes and `cat` makes.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any, TypeVar

from portability import expectations
from portability.binaries import excess
from portability.model import CaseInfo, Cell, Expectation, Observation, Outcome, Target, Verdict, from_json, to_json

FORMAT = "portability-results"
VERSION = 1  # of the format; a reader knows this one and those before

N = TypeVar("N")


class ResultsError(ValueError):
    """A results file that cannot be read or written; the message names the file, and the line where there is one."""


@dataclass(frozen=True)
class Provenance:
    """Where a run was made, and with what."""

    host: str = ""  # a label that people give, never a machine's network name
    os: str = ""
    python: str = ""
    torch: str = ""
    triton: str = ""
    driver: str = ""
    devices: tuple[str, ...] = ()
    commit: str = ""  # of the project under test; ends in "+" where files were changed
    knobs: Mapping[str, str] = field(default_factory=dict)  # what changes numerics: FP fusion, TF32
    seed: int = 0
    started: str = ""  # UTC, ISO 8601


@dataclass(frozen=True)
class Selection:
    """What the run was asked for; empty means everything."""

    kernels: tuple[str, ...] = ()
    backends: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ()
    samples: str = "default"  # quick, default or full
    timing: bool = True
    expression: str = ""  # pytest's own -k, -m, --lf
    cells: int = 0  # how many cells that came to
    environments: tuple[str, ...] = ()


@dataclass(frozen=True)
class Header:
    """The first line of a run."""

    run: str  # identifies the run among others
    provenance: Provenance = field(default_factory=Provenance)
    targets: tuple[Target, ...] = ()
    cases: tuple[CaseInfo, ...] = ()
    claims: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # target -> dtypes that its adapter claims
    expectations: tuple[Expectation, ...] = ()
    selection: Selection = field(default_factory=Selection)

    def claimed(self, cell: Cell) -> bool:
        """Return whether the cell's dtype is claimed; a target of which nothing is known claims all."""
        return cell.target not in self.claims or cell.dtype in self.claims[cell.target]


@dataclass(frozen=True)
class Footer:
    """The last line of a run that came to its end."""

    finished: str  # UTC, ISO 8601
    counts: Mapping[str, int] = field(default_factory=dict)  # observations by outcome


@dataclass(frozen=True)
class Run:
    """All observations of one invocation on one machine, the last one of each cell."""

    header: Header
    observations: tuple[Observation, ...]
    footer: Footer | None = None
    file: str = ""
    torn: bool = False  # its last line was cut short, and is left out

    @property
    def interrupted(self) -> bool:
        """Whether the run did not come to its end."""
        return self.footer is None

    @property
    def day(self) -> date:
        """The day on which the run began: rules expire against it, so that a file is judged alike for ever."""
        try:
            return date.fromisoformat(self.header.provenance.started[:10])
        except ValueError:
            return date.min

    @property
    def probes(self) -> frozenset[str]:
        """The names of the cases that are API probes: those that are about names of the language."""
        return frozenset(c.name for c in self.header.cases if c.names)

    @property
    def foreign(self) -> frozenset[str]:
        """The names of the cases that were recorded from packages: those of a group that are no probes."""
        return frozenset(c.name for c in self.header.cases if c.group and not c.names)

    def verdicts(self) -> list[Verdict]:
        """Return the verdict on each observation, in order, by what the run's own header declares."""
        header, day, probes, foreign = self.header, self.day, self.probes, self.foreign
        return [
            expectations.judge(
                header.expectations, o, header.claimed(o.cell), day, o.cell.kernel in probes, o.cell.kernel in foreign
            )
            for o in self.observations
        ]


def header_line(header: Header) -> str:
    """Return the first line of a run."""
    return _line({"format": FORMAT, "version": VERSION, **to_json(header)})


def observation_line(observation: Observation) -> str:
    """Return the line of one observation."""
    return _line(to_json(observation))


def footer_line(finished: str, observations: Iterable[Observation]) -> str:
    """Return the last line of a run."""
    counts = Counter(str(o.outcome) for o in observations)
    return _line(to_json(Footer(finished, dict(sorted(counts.items())))))


def _line(data: Any) -> str:
    # ASCII alone: no terminal, editor or web page can be misled by what a compiler's message held.
    return json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":")) + "\n"


def write_runs(path: Path, runs: Iterable[Run]) -> None:
    """Write whole runs into one file, one after the other. Raises `ResultsError` if it cannot be written."""
    try:
        with path.open("w", encoding="ascii", newline="\n") as file:
            for run in runs:
                file.write(header_line(run.header))
                file.writelines(observation_line(o) for o in run.observations)
                if run.footer is not None:
                    file.write(_line(to_json(run.footer)))
    except OSError as error:
        raise ResultsError(f"{path}: cannot be written: {error.strerror or error}") from error


# ------------------------------------------------------------------------------------------------- reading


def read_run(path: Path) -> Run:
    """Return the one run in the file. Raises `ResultsError`, also where there are several."""
    runs = read_runs(path)
    if len(runs) != 1:
        raise ResultsError(f"{path}: holds {len(runs)} runs, where one is needed")
    return runs[0]


def read_runs(path: Path) -> list[Run]:
    """Return the runs in the file.

    A last line that was cut short is left out, and said (`Run.torn`). Anything else that does not fit, and a format
    newer than this reader, is refused by a `ResultsError` that names the file and the line.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ResultsError(f"{path}: cannot be read: {error.strerror or error}") from error
    runs = list(_runs(str(path), data))
    if not runs:
        raise ResultsError(f"{path}:1: no header of a run in it")
    return runs


def _runs(file: str, data: bytes) -> Iterator[Run]:
    header: Header | None = None
    observations: dict[Cell, Observation] = {}
    footer: Footer | None = None
    torn = False
    lines = data.split(b"\n")
    for number, raw in enumerate(lines, 1):
        if not raw.strip():
            continue
        place = f"{file}:{number}"
        try:
            record = _parse(raw, place)
        except ResultsError:
            if number < len(lines) or header is None:  # a newline follows it, so it was written whole
                raise
            torn = True
            break
        if "format" in record:
            if header is not None:
                yield Run(header, tuple(observations.values()), footer, file)
            header, observations, footer = _header(record, place), {}, None
        elif header is None:
            raise ResultsError(f"{place}: no results file of this harness: its first line has no 'format'")
        elif footer is not None:
            raise ResultsError(f"{place}: goes on after the end of the run")
        elif "finished" in record:
            footer = _noun(Footer, record, place)
        else:
            observation = _noun(Observation, record, place)
            observations.pop(observation.cell, None)  # the last one counts, and stands where it came
            observations[observation.cell] = observation
    if header is not None:
        yield Run(header, tuple(observations.values()), footer, file, torn)


def _parse(raw: bytes, place: str) -> dict[str, Any]:
    try:
        record = json.loads(raw, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:  # ValueError: bad JSON, bad UTF-8, and numbers of absurd length
        raise ResultsError(f"{place}: no JSON: {error}") from None
    if not isinstance(record, dict):
        raise ResultsError(f"{place}: a table is needed, not {str(record)[:40]!r}")
    return record


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


def _header(record: dict[str, Any], place: str) -> Header:
    if record.pop("format") != FORMAT:
        raise ResultsError(f"{place}: no results file of this harness: its 'format' is not {FORMAT!r}")
    version = record.pop("version", None)
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise ResultsError(f"{place}: version {version!r} of {FORMAT} does not exist")
    if version > VERSION:
        raise ResultsError(
            f"{place}: version {version} of {FORMAT} is newer than {VERSION}, the newest that is read here; "
            "update triton-portability"
        )
    header = _noun(Header, record, place)
    for rule in header.expectations:
        try:
            re.compile(rule.match)
            expectations.version_range(rule.triton)
            expectations.expiry(rule.expires or "0")
        except (re.error, ValueError) as error:
            raise ResultsError(f"{place}: {rule.place}: {error}") from None
    return header


def _noun(kind: type[N], record: Mapping[str, Any], place: str) -> N:
    try:
        return from_json(kind, record)
    except ValueError as error:
        raise ResultsError(f"{place}: {error}") from None


# ----------------------------------------------------------------------------------------------- exit code


def exit_code(runs: Sequence[Run], unmatched: Collection[Expectation] = ()) -> int:
    """Return 0 for all as expected, 1 for a finding, a regression or a rule that never matched, 2 for nothing tried."""
    if all(o.outcome is Outcome.UNAVAILABLE for run in runs for o in run.observations):
        return 2
    if any(True for run in runs for _ in excess(run.observations, run.header.cases)):
        return 1
    return 1 if unmatched or any(v.standing.fails for run in runs for v in run.verdicts()) else 0
