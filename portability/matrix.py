"""`matrix.toml`: what a project tests, where, and what it declares not to pass.

    [matrix]            kernels, backends (modules), samples, limits (seconds)
    [targets."ID"]      title, omit
    [environments.NAME] python, variables, host, targets
    [blocks.KERNEL."SELECTOR"]   blocks that win over the adapters' tables
    [[expect]]          a deviation from `pass`, with its reason

Nothing else. What is wrong in the file is refused by a `MatrixError` that names the place, the value and the choices.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import Any

import tomllib

from portability import environments, expectations
from portability.expectations import NAMES, UNDECLARABLE, in_range, names_cell
from portability.model import (
    DEFAULT_ENVIRONMENT,
    Cell,
    Expectation,
    Observation,
    Outcome,
    Verdict,
    Word,
)
from portability.tomltable import MatrixError, Table, nearest
from portability.validation import never_matched, validate

__all__ = [
    "LIMITS",
    "EnvironmentSettings",
    "Matrix",
    "MatrixError",
    "Samples",
    "TargetSettings",
    "explain",
    "judge",
    "never_matched",
    "parse_matrix",
    "read_matrix",
    "validate",
]

LIMITS: Mapping[str, float] = {"run": 60.0, "compile": 300.0}  # seconds a cell may take, by kind


class Samples(Word):
    """Which samples a run takes."""

    QUICK = "quick"  # the quick ones, everywhere
    DEFAULT = "default"  # every sample where values are computed, the quick ones where only a compiler speaks
    FULL = "full"


@dataclass(frozen=True)
class TargetSettings:
    """What a project says of one target."""

    title: str = ""
    omit: bool = False


@dataclass(frozen=True)
class EnvironmentSettings:
    """What a project says of an environment: which Python, variables and host, and for which targets."""

    name: str
    python: str = ""  # empty is the Python that runs the harness
    variables: Mapping[str, str] = field(default_factory=dict)
    host: str = ""  # for ssh; empty is this machine
    targets: tuple[str, ...] = ()  # patterns


@dataclass(frozen=True)
class Matrix:
    """The whole file. `Matrix()` is that of a project without one."""

    file: str = "matrix.toml"
    kernels: tuple[str, ...] = ()
    backends: tuple[str, ...] = ()
    samples: Samples = Samples.DEFAULT
    limits: Mapping[str, float] = field(default_factory=lambda: dict(LIMITS))
    targets: Mapping[str, TargetSettings] = field(default_factory=dict)
    environments: Mapping[str, EnvironmentSettings] = field(default_factory=dict)
    blocks: Mapping[str, Mapping[str, Mapping[str, Any]]] = field(default_factory=dict)  # kernel -> selector -> entry
    expectations: tuple[Expectation, ...] = ()

    def with_environments(self, names: Collection[str], known: Collection[str] = ()) -> Matrix:
        """Return the matrix with environments that `portability env create` made, every target in them.

        Left as they are: the default one, what is declared already, and those in `known`, the adapters' own. Raises
        `LookupError` with the command that makes it for one that is not installed, else with the choices.
        """
        new = [n for n in names if n not in {DEFAULT_ENVIRONMENT, *self.environments, *known}]
        made = {n: EnvironmentSettings(environments.get(n).name) for n in new}
        return replace(self, environments={**self.environments, **made})

    def rules_for(self, cell: Cell, versions: Mapping[str, str]) -> list[Expectation]:
        """Return the rules that govern `cell` under `versions`; a valid matrix has at most one."""
        return expectations.rules_for(self.expectations, cell, versions)


# ------------------------------------------------------------------------------------------------- reading


def read_matrix(path: Path) -> Matrix:
    """Return what the file at `path` says. Raises `MatrixError`, also where it cannot be read."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise MatrixError(f"{path.name}: cannot be read: {error}") from error
    return parse_matrix(text, path.name)


def parse_matrix(text: str, file: str = "matrix.toml") -> Matrix:
    """Return what `text` says; `file` names it in errors."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise MatrixError(f"{file}: {error}") from None
    root = Table(file, "", data, ("matrix", "targets", "environments", "blocks", "expect"))
    general = Table(file, "[matrix]", root.tables("matrix"), ("kernels", "backends", "samples", "limits"))
    rules = data.get("expect", [])
    if not isinstance(rules, list):
        root.refuse("expect", rules, "write it as [[expect]], once a rule")
    return Matrix(
        file,
        general.texts("kernels"),
        general.texts("backends"),
        general.choice("samples", Samples.DEFAULT),
        _limits(file, general.tables("limits")),
        {k: _target(file, k, v) for k, v in root.tables("targets").items()},
        {k: _environment(file, k, v) for k, v in root.tables("environments").items()},
        {k: _blocks(file, k, v) for k, v in root.tables("blocks").items()},
        tuple(_expectation(file, i, rule) for i, rule in enumerate(rules, 1)),
    )


def _limits(file: str, data: Mapping[str, Any]) -> Mapping[str, float]:
    table = Table(file, "[matrix.limits]", data, LIMITS)
    for key, value in data.items():
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < float("inf"):
            table.refuse(key, value, "a positive number of seconds is needed")
    return {**LIMITS, **{k: float(v) for k, v in data.items()}}


def _target(file: str, name: str, data: Any) -> TargetSettings:
    table = Table(file, f'[targets."{name}"]', data, ("title", "omit"))
    return TargetSettings(table.text("title"), table.flag("omit"))


def _environment(file: str, name: str, data: Any) -> EnvironmentSettings:
    table = Table(file, f"[environments.{name}]", data, ("python", "variables", "host", "targets"))
    if name == DEFAULT_ENVIRONMENT:
        raise MatrixError(f"{table.place}: {name!r} is the environment that runs the harness; take another name")
    if not re.fullmatch(r"[A-Za-z0-9_.:-]+", name):
        raise MatrixError(f"{table.place}: letters, digits, '.', '_', '-' and ':' only, since it enters test ids")
    variables = Table(file, f"[environments.{name}.variables]", table.tables("variables"), None)
    values = {k: variables.text(k) for k in variables.data}
    return EnvironmentSettings(name, table.text("python"), values, table.text("host"), table.texts("targets"))


def _blocks(file: str, kernel: str, data: Any) -> Mapping[str, Mapping[str, Any]]:
    selectors = Table(file, f"[blocks.{kernel}]", data, None)
    for selector in selectors.data:
        entry = Table(file, f'[blocks.{kernel}."{selector}"]', selectors.data[selector], None)
        for key, value in entry.data.items():
            if not isinstance(value, int) and key != "found":
                entry.refuse(key, value, "a whole number or a bool is needed")
    return selectors.data


def _expectation(file: str, number: int, data: Any) -> Expectation:
    keys = (*NAMES, "outcome", "match", "reason", "link", "triton", "expires")
    table = Table(file, f"[[expect]] {number}", data, keys)
    outcomes = table.texts("outcome")
    declarable = [o.value for o in Outcome if o not in UNDECLARABLE]
    if not outcomes:
        raise MatrixError(f"{table.place}: outcome is needed: one or more of {', '.join(declarable)}")
    for outcome in outcomes:
        if outcome not in declarable:
            table.refuse("outcome", outcome, nearest(outcome, declarable))
    if not table.text("reason").strip():
        raise MatrixError(f"{table.place}: reason is needed: why this does not pass")
    if not any(n in table.data for n in NAMES):
        raise MatrixError(f"{table.place}: names no cell: one of {', '.join(NAMES)} is needed")
    match = table.text("match")
    try:
        re.compile(match)
    except re.error as error:
        table.refuse("match", match, f"no regular expression: {error}")
    expires = data.get("expires", "")
    return Expectation(
        reason=table.text("reason").strip(),
        outcome=tuple(Outcome(o) for o in outcomes),
        place=table.place,
        **{n: table.texts(n, ("*",)) for n in NAMES},
        match=match,
        triton=_version(table, "triton", table.text("triton"), expectations.version_range),
        expires=_version(
            table, "expires", expires.isoformat() if isinstance(expires, date) else table.text("expires"),
            expectations.expiry,
        ),
        link=table.text("link"),
    )  # fmt: skip


def _version(table: Table, key: str, text: str, parse: Callable[[str], str]) -> str:
    try:
        return parse(text) if text else ""
    except ValueError as error:
        what = "a version range (>=3.6,<3.8)" if key == "triton" else "a date (2027-01-31) or a version range"
        table.refuse(key, text, f"{what} is needed: {error}")


# ------------------------------------------------------------------------------------------------- judging


def judge(
    matrix: Matrix,
    observation: Observation,
    claims: Callable[[Cell], bool],
    today: date,
    probes: Collection[str] = (),
) -> Verdict:
    """Return the standing of `observation`: pure, so that a file of observations is judged as the run was.

    claims  whether the adapter claims the cell's dtype on its target
    today   the day against which rules expire
    probes  names of the cases that are API probes
    """
    cell = observation.cell
    return expectations.judge(matrix.expectations, observation, claims(cell), today, cell.kernel in probes)


def explain(matrix: Matrix, observation: Observation, verdict: Verdict) -> str:
    """Return why `observation` stands as it does: the rule that decided, and those that name the cell and did not."""
    version = observation.versions.get("triton", "")
    lines = [
        observation.cell.id,
        f"  observed   {observation.outcome}, evidence {observation.evidence}"
        + (f", in {observation.stage}" if observation.stage else ""),
        f"  standing   {verdict.standing}: {verdict.why}",
    ]
    lines += [f"  detail     {line}" for line in observation.detail.splitlines()[:6]]
    for rule in matrix.expectations:
        if not names_cell(rule, observation.cell):
            continue
        if rule == verdict.expectation:
            lines.append(f"  decided by {rule.place}: {' or '.join(rule.outcome)}: {rule.reason}")
            lines += [f"             {rule.link}"] if rule.link else []
        elif not in_range(rule.triton, version):
            lines.append(f"  not for    {rule.place}: Triton {rule.triton}, and this is {version or 'not known'}")
        else:
            lines.append(f"  not asked  {rule.place}: {' or '.join(rule.outcome)}: {rule.reason}")
    recorded = observation.recorded
    if recorded is not None:
        how = f", {recorded.how}" if recorded.how else ""
        lines.append(f"  decided by the baseline of Triton {recorded.triton}: {recorded.outcome}{how}")
    elif verdict.expectation is None:
        lines.append(f"  decided by no rule of {matrix.file}")
    return "\n".join(lines)
