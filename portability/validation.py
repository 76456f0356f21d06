"""Whether what `matrix.toml` names is there: before a run by name, after it by what was run."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from portability.expectations import in_range, matches, names_cell, overlaps
from portability.model import DEFAULT_ENVIRONMENT, CaseInfo, Cell, Expectation, Observation, Outcome, Target
from portability.tomltable import MatrixError, nearest

if TYPE_CHECKING:
    from portability.matrix import Matrix


def validate(
    matrix: Matrix, cases: Sequence[CaseInfo], targets: Sequence[Target], families: Collection[str] = ()
) -> None:
    """Raise `MatrixError` at the first name that is no kernel, dtype, sample, target or environment.

    cases, targets  everything that exists here, before any selection or omission
    families        the adapters' names for groups of targets, which block tables may use

    A rule on an API probe is refused, since probes are compared with a baseline, and so are two rules on one cell,
    unless their version ranges are disjoint.
    """
    ids = [t.id for t in targets]
    environments = {DEFAULT_ENVIRONMENT, *matrix.environments, *(t.environment for t in targets)}
    for name in matrix.targets:
        _check(f'{matrix.file}: [targets."{name}"]', (name,), ids)
    for name, environment in matrix.environments.items():
        _check(f"{matrix.file}: [environments.{name}]: targets", environment.targets, ids)
    _check_blocks(matrix, cases, {"*", *ids, *families})
    for rule in matrix.expectations:
        _check_rule(rule, cases, ids, environments)
    for a, b, cell in overlaps(matrix.expectations, _parts(cases, ids, environments)):
        raise MatrixError(
            f"{b.place}: governs {cell.id}, as {a.place} does; give them disjoint version ranges, or make one narrower"
        )


def _check(place: str, patterns: Iterable[str], known: Collection[str]) -> None:
    for pattern in patterns:
        if not any(matches((pattern,), name) for name in known):
            raise MatrixError(f"{place}: {pattern!r} names nothing here; {nearest(pattern, known)}")


def _check_blocks(matrix: Matrix, cases: Sequence[CaseInfo], places: Collection[str]) -> None:
    by_name = {c.name: c for c in cases}
    for kernel, selectors in matrix.blocks.items():
        if kernel not in by_name:
            raise MatrixError(f"{matrix.file}: [blocks.{kernel}]: no such kernel; {nearest(kernel, by_name)}")
        for selector in selectors:
            place = f'{matrix.file}: [blocks.{kernel}."{selector}"]'
            where, _, dtype = selector.partition("/")
            if where not in places:
                raise MatrixError(f"{place}: {where!r} is no target or family; {nearest(where, places)}")
            if dtype:
                _check(place, (dtype,), by_name[kernel].dtypes)


def _check_rule(
    rule: Expectation, cases: Sequence[CaseInfo], ids: Collection[str], environments: Collection[str]
) -> None:
    kernels = [c for c in cases if not c.group]
    probes = {c.name for c in cases if c.group}
    for pattern in rule.kernel:
        if pattern in probes:
            raise MatrixError(
                f"{rule.place}: kernel = {pattern!r}: an API probe is compared with its baseline, not a rule"
            )
    _check(f"{rule.place}: kernel", rule.kernel, [c.name for c in kernels])
    ruled = [c for c in kernels if matches(rule.kernel, c.name)]
    _check(f"{rule.place}: dtype", rule.dtype, {d for c in ruled for d in c.dtypes})
    _check(f"{rule.place}: sample", rule.sample, {s.name for c in ruled for s in c.samples})
    _check(f"{rule.place}: target", rule.target, ids)
    _check(f"{rule.place}: environment", rule.environment, environments)


def _parts(
    cases: Sequence[CaseInfo], ids: Collection[str], environments: Collection[str]
) -> Mapping[str, Mapping[str, Collection[str]]]:
    return {
        c.name: {"dtype": c.dtypes, "sample": [s.name for s in c.samples], "target": ids, "environment": environments}
        for c in cases
        if not c.group
    }


def never_matched(matrix: Matrix, observations: Iterable[Observation], cases: Sequence[CaseInfo]) -> list[Expectation]:
    """Return the rules that can match no cell, though the run came to their kernel, target and version.

    A rule whose kernel, target or version was not reached is not among them, nor one whose cell exists but was not
    selected.
    """
    by_name = {c.name: c for c in cases}
    tried = {(o.cell.kernel, o.cell.target, o.cell.environment, o.versions.get("triton", ""))
             for o in observations if o.outcome is not Outcome.UNAVAILABLE}  # fmt: skip
    found = []
    for rule in matrix.expectations:
        reached = {
            kernel
            for kernel, target, environment, version in tried
            if names_cell(rule, Cell(kernel, "", "", target, environment), ("kernel", "target", "environment"))
            and in_range(rule.triton, version)
        }
        if reached and not any(_makes(by_name[k], rule) for k in reached if k in by_name):
            found.append(rule)
    return found


def _makes(case: CaseInfo, rule: Expectation) -> bool:
    return any(
        matches(rule.dtype, dtype)
        for sample in case.samples
        if matches(rule.sample, sample.name)
        for dtype in sample.dtypes or case.dtypes
    )
