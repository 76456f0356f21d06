"""What a check of recorded launches found, as text or JSON: the table, then each failure with what it needs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from portability import report
from portability.merge import merge
from portability.model import Evidence, Observation, Outcome, Resources, to_json
from portability.record.cases import origins, recordable
from portability.record.model import Recording, compiler_of
from portability.render import render
from portability.results import Run
from portability.table import Grid, Section, View

NUMBER = re.compile(r"\d+")
UNDECLARED = "? a package's kernel that fails, of which nothing is declared"
MANY = 3  # kernels that fail for one reason are one line
SHOWN = ("Declared", "Summary", "Legend")  # sections of the table that say something here too


def text(run: Run, recordings: Sequence[Recording], seconds: float, file: str) -> str:
    """Return the table of kernels by targets, then what failed; it took `seconds`, and `file` holds it."""
    table = report.build(merge([run]), [View.PACKAGES], ("group", "kernel") if _several(run) else ("kernel",))
    table = replace(table, grids=tuple(_short(g) for g in table.grids))
    kept = tuple(replace(s, lines=tuple(map(_here, s.lines))) for s in table.sections if s.title in SHOWN)
    failing = Section("Failing", tuple(_failing(run.observations, origins(recordings))))
    told = tuple(f"{r.summary}{_versions(r)}" for r in recordings)
    recorded = Section("Recorded", (*told, *_for_others(run.observations, recordings)))
    dropped = Section("Configurations that a tuner drops there", tuple(_dropped(run.observations)))
    lost = Section("Not tried", tuple(_lost(run.observations)))
    sections = tuple(s for s in (failing, dropped, lost, _drawn(run), recorded, *kept) if s.lines)
    cells = f"{len(run.observations)} cell{'s' if run.observations[1:] else ''}"
    end = f"{cells} in {seconds:.1f} s; results in {file}: portability table --view packages {file}\n"
    return render(replace(table, sections=sections)) + "\n" + end


def _here(line: str) -> str:
    """Of a package nothing is declared, unless by a rule: what fails is a finding of this check."""
    return UNDECLARED if line == report.SIGNS["?"] else line


def _several(run: Run) -> bool:
    return len({c.group for c in run.header.cases}) > 1


def _short(grid: Grid) -> Grid:
    """Leave the package out of the kernels' names: its own column names it, or it is the only one."""
    rows = (replace(r, names=(*r.names[:-1], r.names[-1].partition(":")[2])) for r in grid.rows)
    return replace(grid, rows=tuple(rows))


def json_text(run: Run) -> str:
    """Return one object: the header's provenance, targets and kernels, and every observation."""
    header = to_json(run.header)
    return json.dumps({**header, "observations": [to_json(o) for o in run.observations]}, indent=1) + "\n"


def _lost(observations: Sequence[Observation]) -> Iterator[str]:
    found: dict[tuple[str, str], dict[str, None]] = {}
    for o in observations:
        if o.outcome is Outcome.UNAVAILABLE:
            found.setdefault((o.cell.kernel, o.detail.split("\n", 1)[0]), {})[o.cell.target] = None
    for (kernel, why), targets in found.items():
        yield f"{kernel} on {', '.join(targets)}: {why}"


def _drawn(run: Run) -> Section:
    interpreted = any(o.evidence is Evidence.INTERPRETED for o in run.observations)
    said = "on drawn values, since none were recorded: bounds, undefined values and races are judged, results are not"
    return Section("Interpreted", (said,) if interpreted else ())


def _versions(recording: Recording) -> str:
    return "".join(f", {name} {version}" for name, version in recording.versions.items())


def _for_others(observations: Sequence[Observation], recordings: Sequence[Recording]) -> Iterator[str]:
    """Say which targets were given what a program launched where it found another vendor's device."""
    compiled = dict.fromkeys(o.cell.target for o in observations if o.evidence is not Evidence.INTERPRETED)
    for program in dict.fromkeys(r.program for r in recordings):
        made_for = dict.fromkeys(r.target for r in recordings if r.program == program)
        others = [t for t in compiled if compiler_of(t) not in map(compiler_of, made_for)]
        if others:
            name = " ".join(program) or "the program"
            words = f"{name} was recorded for {', '.join(made_for)}, and may launch otherwise on {', '.join(others)}"
            first = next((t for t in others if t in recordable()), "")
            yield f"{words}: portability record --target {first}" if first else words


def _failing(observations: Sequence[Observation], tests: Mapping[tuple[str, str], str]) -> Iterator[str]:
    """One line for what fails alike: on several targets, in several launches, or in many kernels.

    Numbers in the words may differ.
    """
    alike: dict[tuple[str, ...], list[Observation]] = {}
    for o in observations:
        if o.outcome not in (Outcome.PASS, Outcome.UNAVAILABLE):
            words = NUMBER.sub("#", _first(o))
            alike.setdefault((o.cell.kernel, o.outcome.value, o.line, words), []).append(o)
    reasons: dict[tuple[str, ...], list[list[Observation]]] = {}
    for (_, outcome, _, words), some in sorted(alike.items(), key=lambda item: -item[1][0].outcome.severity):
        reasons.setdefault((outcome, words, _targets(some)), []).append(some)
    for several in reasons.values():
        if len(several) < MANY:
            yield from (_one(some, tests) for some in several)
        else:
            o = several[0][0]
            places = ", ".join(f"{some[0].cell.kernel} at {some[0].line}" for some in several)
            yield f"{len(several)} kernels on {_targets(several[0])}: {o.outcome.value}: {_first(o)}: {places}"


def _one(some: Sequence[Observation], tests: Mapping[tuple[str, str], str]) -> str:
    """Say what fails alike of one kernel, what it needs, and who launched it."""
    o = some[0]
    launches = len({(o.cell.dtype, o.cell.sample) for o in some})
    count = f" ({launches} launches)" if launches > 1 else ""
    needs = next((f"; {n}" for o in some for n in [_needs(o.resources)] if n), "")
    by = next((f"; launched by {t}" for o in some for t in [tests.get((o.cell.kernel, o.cell.sample))] if t), "")
    place = f" at {o.line}" if o.line else ""
    return f"{o.cell.kernel}{count} on {_targets(some)}: {o.outcome.value}{place}: {_first(o)}{needs}{by}"


def _targets(observations: Sequence[Observation]) -> str:
    return ", ".join(dict.fromkeys(o.cell.target for o in observations))


def _first(observation: Observation) -> str:
    """Return what is said first; of what was interpreted all: the access that a value comes from is said after it."""
    lines = observation.detail.strip().split("\n")
    return "; ".join(lines if observation.evidence is Evidence.INTERPRETED else lines[:1])


def _needs(resources: Sequence[Resources]) -> str:
    """Return what the hungriest binary needs of what the target has."""
    if not resources:
        return ""
    r = max(resources, key=lambda r: r.shared or 0)
    parts = [f"{r.registers} registers" if r.registers else "", f"{r.spills} B spilled" if r.spills else ""]
    parts += [f"{r.shared} B shared{f' of {r.shared_limit}' if r.shared_limit else ''}" if r.shared else ""]
    return ", ".join(p for p in parts if p)


def _dropped(observations: Sequence[Observation]) -> Iterator[str]:
    found: dict[tuple[str, str], dict[str, None]] = {}
    for o in observations:
        for w in o.warnings:
            if w.code == "config-fails" and o.outcome is Outcome.PASS:
                found.setdefault((w.line, w.message), {})[o.cell.target] = None
    for (line, message), targets in found.items():
        yield f"{line}: {message} ({', '.join(targets)})"
