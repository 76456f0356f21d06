"""Which rule of `matrix.toml` governs a cell, and what an observation makes of it.

Everything here is pure: rules, an observation, what the adapter claims and a date give a verdict.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from fnmatch import fnmatchcase
from functools import cache
from itertools import combinations

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from portability.model import Cell, Evidence, Expectation, Observation, Outcome, Recorded, Standing, Verdict

NAMES = ("kernel", "dtype", "sample", "target", "environment")  # what a cell is made of, and a rule's patterns

# What a compiler says without executing; every other outcome shows only when values are computed.
STATIC = frozenset({Outcome.COMPILE_ERROR, Outcome.OUT_OF_RESOURCES})
# How a target says no to a dtype or a feature, by name.
REFUSALS = frozenset({Outcome.UNSUPPORTED, Outcome.COMPILE_ERROR})
# What only a faulty compiler, interpreter or probe gives; whatever else a probe comes to is a fact of coverage.
MISTAKES = frozenset({
    Outcome.WRONG, Outcome.OUT_OF_BOUNDS, Outcome.RACE, Outcome.UNDEFINED_VALUE, Outcome.NONDETERMINISTIC,
})  # fmt: skip
# What a rule cannot declare: the default, the absence of a try, and this harness's own faults.
UNDECLARABLE = frozenset({Outcome.PASS, Outcome.UNAVAILABLE, Outcome.HARNESS_ERROR})


@cache
def matches(patterns: tuple[str, ...], name: str) -> bool:
    """Return whether `name` is one of `patterns`, or fits one that is a glob."""
    return any(name == p or fnmatchcase(name, p) for p in patterns)


def names_cell(rule: Expectation, cell: Cell, names: Iterable[str] = NAMES) -> bool:
    """Return whether each of the rule's patterns fits the cell."""
    return all(matches(getattr(rule, n), getattr(cell, n)) for n in names)


# ------------------------------------------------------------------------------------------------ versions


@cache
def in_range(versions: str, version: str) -> bool:
    """Return whether `version` lies in the range `versions`; an empty range holds all, an unknown version is in none.

    A build of the development branch ("3.10.0.dev5", "3.9.0+git1234") is compared like any other version.
    """
    if not versions:
        return True
    try:
        return bool(version) and SpecifierSet(versions).contains(Version(version), prereleases=True)
    except InvalidVersion:
        return False


@cache
def disjoint(a: str, b: str) -> bool:
    """Return whether no version lies in both ranges.

    An intersection of ranges begins at one of their bounds, or right above one, or below all of them; so it is
    enough to ask at these versions.
    """
    points = {"0"}
    for bound in (*SpecifierSet(a), *SpecifierSet(b)):
        wildcard = bound.version.endswith(".*")
        release = Version(bound.version.removesuffix(".*")).release
        points |= {bound.version.removesuffix(".*"), ".".join(map(str, (*release, 0, 0, 1)))}
        if wildcard:  # its far end: ==3.6.* ends, and !=3.6.* begins again, at 3.7
            points.add(".".join(map(str, (*release[:-1], release[-1] + 1))))
    return not any(in_range(a, p) and in_range(b, p) for p in points)


def expired(rule: Expectation, today: date, version: str) -> bool:
    """Return whether the rule's last day is over, or the version that it was to end with is there."""
    if not rule.expires:
        return False
    try:
        return today > date.fromisoformat(rule.expires)
    except ValueError:
        return in_range(rule.expires, version)


def expiry(text: str) -> str:
    """Return `text` as `Expectation.expires` holds it: an ISO date, or a version range; "3.10" means from 3.10 on.

    Raises `ValueError` for anything else.
    """
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError:
        pass
    try:
        return f">={Version(text)}"
    except InvalidVersion:
        return version_range(text)


def version_range(text: str) -> str:
    """Return `text` if it is a version range. Raises `ValueError` if it is not."""
    try:
        if any(s.operator == "===" for s in SpecifierSet(text)):
            raise ValueError("'===' compares text, not versions")
    except InvalidSpecifier as error:
        raise ValueError(str(error)) from None
    return text


# ----------------------------------------------------------------------------------------------- selection


def rules_for(rules: Sequence[Expectation], cell: Cell, versions: Mapping[str, str]) -> list[Expectation]:
    """Return the rules that govern `cell` where its environment holds `versions`; a valid matrix has at most one.

    Where Triton's version is not known, rules with a version range do not apply.
    """
    return [r for r in rules if names_cell(r, cell) and in_range(r.triton, versions.get("triton", ""))]


def overlaps(rules: Sequence[Expectation], cells: Mapping[str, Mapping[str, Iterable[str]]]) -> Iterator[
    tuple[Expectation, Expectation, Cell]
]:  # fmt: skip
    """Yield pairs of rules that govern one cell in one version, with such a cell.

    `cells` holds, by kernel, the dtypes, samples, targets and environments that it can have.
    """
    for a, b in combinations(rules, 2):
        if disjoint(a.triton, b.triton):
            continue
        for kernel, parts in cells.items():
            common = [kernel if matches(a.kernel, kernel) and matches(b.kernel, kernel) else None]
            common += [_first_common(getattr(a, n), getattr(b, n), parts[n]) for n in NAMES[1:]]
            if None not in common:
                yield a, b, Cell(*(c for c in common if c is not None))
                break


def _first_common(a: tuple[str, ...], b: tuple[str, ...], names: Iterable[str]) -> str | None:
    return next((n for n in names if matches(a, n) and matches(b, n)), None)


# ------------------------------------------------------------------------------------------------- judging


def judge(
    rules: Sequence[Expectation],
    observation: Observation,
    claimed: bool,
    today: date,
    probe: bool = False,
    foreign: bool = False,
) -> Verdict:
    """Return the standing of `observation`.

    claimed  whether the adapter says that the cell's dtype works on its target
    today    the day against which rules expire
    probe    whether the cell is an API probe: it is compared with its baseline, which the observation carries
    foreign  whether the cell is of a kernel that was recorded from a package, which no rule here speaks of
    """
    outcome = observation.outcome
    if outcome is Outcome.UNAVAILABLE:
        return Verdict(Standing.UNKNOWN, "nothing here could try it")
    if outcome is Outcome.HARNESS_ERROR:
        return Verdict(Standing.REGRESSION, "an error of the harness itself; no rule can declare it")
    if probe:
        return _against_baseline(observation, observation.recorded)
    if not claimed and outcome in REFUSALS:
        return Verdict(Standing.AS_EXPECTED, "the adapter does not claim this dtype, and it is refused")
    return _judged(rules_for(rules, observation.cell, observation.versions), observation, claimed, today, foreign)


def _judged(
    governing: Sequence[Expectation], observation: Observation, claimed: bool, today: date, foreign: bool
) -> Verdict:
    """By the first rule that speaks of the cell, else by what the adapter claims, else as what is to pass."""
    if governing:
        return _against_rule(governing[0], observation, today)
    if not claimed and not foreign:  # a package's kernel may hold a dtype that it does not compute in
        return _against_claim(observation)
    return _against_pass(observation, foreign)


def _against_baseline(observation: Observation, recorded: Recorded | None) -> Verdict:
    """A change in either direction fails; against an older Triton's baseline it is reported."""
    if recorded is None and observation.outcome in MISTAKES:
        return Verdict(Standing.REGRESSION, f"{observation.outcome}, and no baseline has it")
    if recorded is None:
        return Verdict(Standing.UNKNOWN, f"no baseline of this probe, {observation.evidence}, to compare with")
    of = f"in the baseline of Triton {recorded.triton}"
    before, now = _in_words(recorded.outcome, recorded.how), _in_words(observation.outcome, observation.how)
    same_how = observation.how == recorded.how or not observation.how or not recorded.how
    if observation.outcome is recorded.outcome and same_how:
        return Verdict(Standing.AS_EXPECTED, f"{now}, as {of}")
    if _slow_compile(observation) or recorded.outcome is Outcome.TIMEOUT:
        return Verdict(Standing.UNKNOWN, f"{now}, {before} {of}: how long a compiler takes is the machine's")
    version = observation.versions.get("triton", "")
    if not in_range(f"=={recorded.triton}.*", version):
        return Verdict(Standing.UNKNOWN, f"changed since Triton {recorded.triton}: {before} there, {now} in {version}")
    standing = _change(recorded.outcome, observation.outcome)
    return Verdict(standing, f"{now}, {before} {of}; portability update records it")


def _change(before: Outcome, now: Outcome) -> Standing:
    if Outcome.PASS not in (before, now) or before is now:
        return Standing.MISMATCH  # another failure, or a pass by other means
    return Standing.STALE if now is Outcome.PASS else Standing.REGRESSION


def _in_words(outcome: Outcome, how: str) -> str:
    return f"{outcome} ({how})" if how else str(outcome)


def _against_rule(rule: Expectation, observation: Observation, today: date) -> Verdict:
    outcome, declared = observation.outcome, " or ".join(rule.outcome)
    if expired(rule, today, observation.versions.get("triton", "")):
        return Verdict(Standing.EXPIRED, f"the rule expired ({rule.expires})", rule)
    if outcome in rule.outcome:
        if re.search(rule.match, observation.detail):
            return Verdict(Standing.AS_EXPECTED, f"{outcome}, as declared: {rule.reason}", rule)
        return Verdict(Standing.MISMATCH, f"{outcome}, as declared, but its detail does not match {rule.match!r}", rule)
    if _slow_compile(observation):
        return Verdict(Standing.UNKNOWN, "the compiler ran out of time before the rule could be judged", rule)
    if outcome is not Outcome.PASS:
        return Verdict(Standing.MISMATCH, f"{outcome}, where {declared} is declared", rule)
    return _pass_against_rule(rule, observation)


def _pass_against_rule(rule: Expectation, observation: Observation) -> Verdict:
    static, declared = STATIC.issuperset(rule.outcome), " or ".join(rule.outcome)
    if _decides(observation, static):
        return Verdict(Standing.STALE, f"{declared} is declared, and it works ({observation.evidence})", rule)
    judges = "compiled or executed" if static else "executed"
    why = f"{declared} is declared, which one that is {judges} can judge; this one {_reached(observation)}"
    return Verdict(Standing.UNKNOWN, why, rule)


def _against_claim(observation: Observation) -> Verdict:
    if observation.outcome is Outcome.PASS and _decides(observation, static=True):
        return Verdict(Standing.STALE, "claimed not to work, works: extend the adapter's dtypes")
    if observation.outcome is Outcome.PASS or _slow_compile(observation):
        return Verdict(Standing.UNKNOWN, f"the adapter does not claim this dtype; this cell {_reached(observation)}")
    return Verdict(
        Standing.MISMATCH, f"the adapter does not claim this dtype, but it is not refused: {observation.outcome}"
    )


def _against_pass(observation: Observation, foreign: bool) -> Verdict:
    outcome = observation.outcome
    if outcome is Outcome.PASS:
        return Verdict(Standing.AS_EXPECTED, "a pass, which is expected where no rule says otherwise")
    if _slow_compile(observation):
        return Verdict(Standing.UNKNOWN, "the compiler ran out of time, which on a faster machine it may not")
    if foreign:
        return Verdict(Standing.UNKNOWN, f"{outcome}: a package's kernel that fails, of which nothing is declared")
    return Verdict(Standing.REGRESSION, f"{outcome}, and no rule declares it")


def _slow_compile(observation: Observation) -> bool:
    return observation.outcome is Outcome.TIMEOUT and observation.stage == "compile"


def _decides(observation: Observation, static: bool) -> bool:
    """Whether a pass refutes a declared failure. One that launched nothing (an empty input) refutes none."""
    if observation.launches == 0:
        return False
    return observation.evidence.executes or (static and observation.evidence is Evidence.COMPILED)


def _reached(observation: Observation) -> str:
    if observation.outcome is Outcome.PASS and observation.launches == 0:
        return "launched nothing"
    return f"is {observation.evidence}"
