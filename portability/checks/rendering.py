"""A report as text or JSON. A renderer only renders."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence

from portability.checks.model import VERSION, Fault, FileReport, Report, TargetReport
from portability.model import Evidence, Outcome, to_json


def text(report: Report) -> str:
    """By file and, in it, by the targets that a finding is about: line, code, message."""
    return "\n".join(_file(f) for f in report.files)


def json_text(report: Report) -> str:
    """One object: `version`, `versions`, `files`, each with `path`, `faults`, `targets`, `patterns`, `unreadable`."""
    data = to_json(report)
    files = [{"faults": [], "targets": [], **f} for f in data.get("files", [])]
    return json.dumps({"version": VERSION, **data, "files": files}, indent=1) + "\n"


FORMATS: Mapping[str, Callable[[Report], str]] = {"text": text, "json": json_text}


def render(report: Report, style: str = "text") -> str:
    """Return the report in a style of `FORMATS`. Raises `ValueError` naming the choices."""
    if style not in FORMATS:
        raise ValueError(f"format {style!r} is none of {', '.join(FORMATS)}")
    return FORMATS[style](report)


def _file(file: FileReport) -> str:
    if file.unreadable:
        return f"{file.path}: cannot be checked: {file.unreadable}\n"
    lines = [f"{file.path}: {_count(file)}"]
    known = [t.target for t in file.targets]
    groups: dict[str, list[Fault]] = {}
    for fault in file.faults:
        groups.setdefault(_heading(fault, known), []).append(fault)
    for heading, faults in groups.items():
        lines.append(f"\n  {heading}")
        lines += [line for fault in faults for line in _fault(fault)]
    if file.patterns:
        lines.append("\n  what the file looks for, in what the compilers made")
        lines += _patterns(file.patterns, known)
    return "\n".join([*lines, "", *(f"  {line}" for line in _reached(file.targets)), ""])


def _patterns(patterns: Mapping[str, Mapping[str, int]], known: Sequence[str]) -> list[str]:
    """One line for each set of matches, with the targets that have it."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for target, found in patterns.items():
        groups.setdefault(tuple(found), []).append(target)
    return [f"    {grouped(targets, known)}: {', '.join(map(_short, found))}" for found, targets in groups.items()]


def _count(file: FileReport) -> str:
    n = len(file.faults)
    return "nothing found" if not n else f"{n} finding{'s' if n > 1 else ''}"


def _heading(fault: Fault, known: Sequence[str]) -> str:
    if fault.everywhere:
        return f"every target ({fault.seen})"
    return f"{grouped(fault.targets, known)} ({fault.seen})"


def grouped(targets: Sequence[str], known: Sequence[str]) -> str:
    """Return the targets, with "cuda:*" where all known ones of a family of names are among them."""
    said, left = [], list(targets)
    for target in targets:
        prefix = target.partition(":")[0]
        family, here = ({t for t in names if t.partition(":")[0] == prefix} for names in (known, left))
        if target in left and len(family) > 1 and family == here:
            said.append(f"{prefix}:*")
            left = [t for t in left if t not in family]
        elif target in left:
            said.append(target)
            left.remove(target)
    return ", ".join(said)


def _fault(fault: Fault) -> list[str]:
    first, *rest = fault.message.splitlines() or [""]
    place = f"{fault.line}: " if fault.line else ""
    outcome = fault.outcome.value if fault.outcome else ""
    word = f" [{outcome}]" if outcome and outcome.replace("_", "-") != fault.code else ""
    return [f"    {place}{fault.code}{word}: {first}", *(f"        {line}" for line in rest[:2])]


def _reached(targets: Sequence[TargetReport]) -> list[str]:
    """One line for each kind of evidence: where it was reached."""
    by_evidence: dict[Evidence, list[str]] = {}
    for t in targets:
        by_evidence.setdefault(t.evidence, []).append(t.target)
    known = [t.target for t in targets]
    lines = [f"{e}: {grouped(names, known)}" for e, names in by_evidence.items() if e is not Evidence.NONE]
    lines += [f"unavailable: {t.target}: {t.detail}" for t in targets if t.evidence is Evidence.NONE]
    failed = [t for t in targets if t.outcome is Outcome.HARNESS_ERROR]
    return lines + [f"the harness failed: {t.target}: {t.detail}" for t in failed]


def _short(text: str) -> str:
    return " ".join(text.split())[:100]
