"""A report as text, JSON, or annotations of a GitHub workflow. A renderer only renders."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from portability.lint.model import LintFinding, Report, Rule
from portability.model import to_json

VERSION = 1  # of the JSON form


def text(report: Report) -> str:
    """`path:line:column CODE message`, one a line."""
    return "".join(f"{f.path}:{f.line}:{f.column} {f.code} {f.message}\n" for f in report.findings)


def json_text(report: Report) -> str:
    """One object: `version`, `findings`, `unreadable`, `files`, `kernels`."""
    found = [to_json(f) for f in report.findings]
    unread = [to_json(u) for u in report.unreadable]
    data = {
        "version": VERSION,
        "files": report.files,
        "kernels": report.kernels,
        "findings": found,
        "unreadable": unread,
    }
    return json.dumps(data, indent=1) + "\n"


def github(report: Report) -> str:
    """Workflow commands: warnings at their lines, and errors for files that could not be read."""
    lines = [_warning(f) for f in report.findings]
    lines += [f"::error file={_property(u.path)}::{_data(u.reason)}" for u in report.unreadable]
    return "".join(line + "\n" for line in lines)


FORMATS: Mapping[str, Callable[[Report], str]] = {"text": text, "json": json_text, "github": github}


def render(report: Report, style: str = "text") -> str:
    """Return the report in a style of `FORMATS`. Raises `ValueError` naming the choices."""
    if style not in FORMATS:
        raise ValueError(f"format {style!r} is none of {', '.join(FORMATS)}")
    return FORMATS[style](report)


def _warning(finding: LintFinding) -> str:
    place = f"file={_property(finding.path)},line={finding.line},col={finding.column}"
    return f"::warning {place},title={_property(f'{finding.code} {finding.rule}')}::{_data(finding.message)}"


def _data(value: str) -> str:
    return value.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(value: str) -> str:
    return _data(value).replace(":", "%3A").replace(",", "%2C")


def explanation(rule: Rule) -> str:
    """Return a rule as Markdown: what, why, where, and both examples."""
    targets = "all targets" if rule.targets == ("*",) else ", ".join(f"`{t}`" for t in rule.targets)
    return (
        f"### {rule.code} {rule.name}\n\n{rule.summary}\n\n{rule.reason}\n\n"
        f"Targets: {targets}. [Reference]({rule.link})\n\n"
        f"Bad:\n\n```python\n{rule.bad}```\n\nGood:\n\n```python\n{rule.good}```\n"
    )
