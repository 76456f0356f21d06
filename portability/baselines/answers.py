"""Looking up a name of the language in the baselines: where it works, how, since when, and what to use instead."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

import tomllib

from portability.baselines import files
from portability.baselines.files import FOLDER, Probe, Record
from portability.baselines.history import best, contract, span
from portability.model import Evidence, Outcome

ADVICE = "advice.toml"  # beside the baselines' folder
# How a name may be written: `exp`, `tl.exp`, `triton.language.exp`, `cbrt`, `sum` of a tensor, `num_stages`.
SPACES = ("", "tl.", "libdevice.", "tensor.", "tensor_descriptor.", "launch.", "jit.", "cast.", "operator.")
VENDORS = ("tl.extra.cuda.", "tl.extra.hip.", "ascend.")
DTYPES = {
    "fp16": "float16", "half": "float16", "bf16": "bfloat16", "fp32": "float32", "float": "float32", "fp64": "float64",
    "double": "float64", "float8e4nv": "float8_e4m3fn", "fp8e4nv": "float8_e4m3fn", "float8e5": "float8_e5m2",
    "fp8e5": "float8_e5m2", "float8e4b8": "float8_e4m3fnuz", "fp8e4b8": "float8_e4m3fnuz", "int1": "bool",
    "float8e5b16": "float8_e5m2fnuz", "fp8e5b16": "float8_e5m2fnuz", "fp8": "float8_e4m3fn", "float8": "float8_e4m3fn",
}  # fmt: skip
LANGUAGE = {  # torch's name of a dtype -> the language's, where they differ
    "float8_e4m3fn": "float8e4nv", "float8_e5m2": "float8e5", "float8_e4m3fnuz": "float8e4b8",
    "float8_e5m2fnuz": "float8e5b16", "bool": "int1",
}  # fmt: skip


class UnknownNameError(LookupError):
    """A name that no probe is about; the message names what may have been meant."""


@dataclass(frozen=True)
class Refusal:
    """Why a target does not pass a probe."""

    outcome: Outcome
    error: str
    instead: str = ""  # what to use there
    contract: bool = False  # no target takes it


@dataclass(frozen=True)
class Row:
    """What one target says. Labels are dtypes, after the probe's name where several probes answer."""

    target: str
    triton: str
    evidence: Evidence
    works: Mapping[str, str] = field(default_factory=dict)  # label -> native, mixed, emulated or ""
    refused: Mapping[str, Refusal] = field(default_factory=dict)
    spans: Mapping[str, str] = field(default_factory=dict)  # label -> "since 3.8", "gone in 3.9"


@dataclass(frozen=True)
class Answer:
    """Everything that is recorded of a name."""

    name: str
    group: str
    triton: str  # the newest recorded version
    versions: tuple[str, ...]  # all that are recorded
    note: str
    probes: tuple[str, ...]  # those that answer
    rows: tuple[Row, ...]
    further: Mapping[str, tuple[Row, ...]]  # probe -> rows, of those that are about the name with an option or in a use
    others: tuple[str, ...] = ()  # other names that may have been meant


@cache
def advice(folder: Path = FOLDER) -> Mapping[str, list[dict[str, str]]]:
    """Return what is written by hand: notes, what to use instead, and names that do not exist."""
    path = folder.parent / ADVICE
    return tomllib.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


# ---------------------------------------------------------------------------------------------------- names


def resolve(asked: str, folder: Path = FOLDER) -> list[str]:
    """Return the names and probes that `asked` may be, the likeliest first. Raises `UnknownNameError` for none."""
    known = known_names(folder)
    plain = asked.removeprefix("@").removeprefix("triton.language.extra.").removesuffix("()")
    plain = plain.replace("triton.language.", "tl.", 1).removeprefix("triton.")
    dtype = DTYPES.get(plain.removeprefix("tl."), plain.removeprefix("torch."))
    if f"cast.{dtype}" in known:  # a dtype, under torch's or the language's name or a shorter one
        return [f"tl.{LANGUAGE.get(dtype, dtype)}", f"cast.{dtype}"]
    for spaces in (SPACES, VENDORS):
        found = [name for space in spaces if (name := space + plain) in known]
        if found:
            return found
        instead = _instead_of(plain, folder)
        if instead:
            raise UnknownNameError(f"{asked!r} does not exist in Triton: {instead}")
    raise UnknownNameError(f"{asked!r} is no name of the language; {_nearest(plain, known)}")


@cache
def known_names(folder: Path = FOLDER) -> Mapping[str, tuple[Probe, ...]]:
    """Return every name and every probe, with the probes that are about it."""
    found: dict[str, list[Probe]] = {}
    for probe in files.probes(folder).values():
        for name in dict.fromkeys((probe.name, *probe.names)):
            found.setdefault(name, []).append(probe)
    return {name: tuple(probes) for name, probes in found.items()}


def _instead_of(plain: str, folder: Path) -> str:
    bare = plain.removeprefix("tl.")
    for entry in advice(folder).get("missing", []):
        if bare in entry["name"].split():
            return entry["use"]
    from portability.lint.language import INSTEAD  # what the rules say of source text

    paths = (f"triton.language.{bare}", f"triton.language.math.{bare}", f"triton.{bare}")
    return next((f"write {INSTEAD[p]}" for p in paths if p in INSTEAD), "")


def _nearest(plain: str, known: Iterable[str]) -> str:
    """Name the three nearest, by their last part or as a whole."""
    known = list(known)
    last: dict[str, str] = {}
    for name in known:
        last.setdefault(name.rpartition(".")[2], name)
    near = [last[n] for n in difflib.get_close_matches(plain.rpartition(".")[2], last, n=3, cutoff=0.6)]
    near = list(dict.fromkeys((*near, *difflib.get_close_matches(plain, known, n=3, cutoff=0.7))))[:3]
    return f"nearest {'is' if len(near) == 1 else 'are'} {', '.join(near)}" if near else "nothing is like it"


def dtype_of(asked: str, dtypes: Sequence[str], name: str) -> str:
    """Return torch's name of a dtype under any of its names. Raises `ValueError` where `name` has no probe of it."""
    dtype = DTYPES.get(
        asked.removeprefix("tl.").removeprefix("torch."), asked.removeprefix("tl.").removeprefix("torch.")
    )
    if dtype not in dtypes:
        raise ValueError(f"{name}: no probe at {asked!r}; there are {', '.join(dtypes)}")
    return dtype


# -------------------------------------------------------------------------------------------------- answers


def look_up(asked: str, dtype: str = "", targets: Sequence[str] = (), folder: Path = FOLDER) -> Answer:
    """Return what the newest baselines say of a name, with older ones for since when.

    dtype    only this one, under torch's or the language's name
    targets  only these; all that have a baseline by default
    Raises `UnknownNameError` for a name that no probe is about and `ValueError` for a dtype without a probe.
    """
    name, *others = resolve(asked, folder)
    about = known_names(folder)[name]
    mains = [p for p in about if p.name == name] or [p for p in about if p.names[0] == name] or list(about)
    dtypes = list(dict.fromkeys(d for p in mains for d in p.dtypes))
    if dtype:
        dtypes = [dtype_of(dtype, list(dict.fromkeys((*dtypes, *(d for p in about for d in p.dtypes)))), name)]
    newest = newest_of(targets, folder)
    last = max(newest.values(), key=files.order, default="")
    note = next((n["note"] for n in advice(folder).get("note", []) if n["name"] == name), "")
    only = frozenset(p.name for p in about)  # what is read of the files, once
    further = [p for p in about if p not in mains and set(p.dtypes) & set(dtypes if dtype else p.dtypes)]
    return Answer(
        name=name,
        group=mains[0].group,
        triton=last,
        versions=tuple(
            sorted({v for t in newest if newest[t] == last for v in files.versions(t, folder)}, key=files.order)
        ),
        note=note,
        probes=tuple(p.name for p in mains),
        rows=tuple(_rows(mains, dtypes, newest, only, folder)),
        further={p.name: tuple(_rows([p], dtypes if dtype else p.dtypes, newest, only, folder)) for p in further},
        others=tuple(others),
    )


def newest_of(targets: Sequence[str] = (), folder: Path = FOLDER) -> Mapping[str, str]:
    """Return the newest minor version with a baseline of each target, of `targets` where some are named."""
    found: dict[str, str] = {}
    for minor in files.versions(folder=folder):
        found |= dict.fromkeys(files.targets(minor, folder), minor)
    for target in targets:
        if target not in found:
            raise ValueError(f"no baseline of {target!r}; there are {', '.join(sorted(found))}")
    return {
        t: m for t, m in sorted(found.items(), key=lambda item: _backend_first(item[0])) if not targets or t in targets
    }


def _backend_first(target: str) -> tuple[str, int, str]:
    backend, _, architecture = target.partition(":")
    return backend, len(architecture), architecture


Found = Mapping[tuple[Probe, str], tuple[Evidence, Record]]


def _rows(
    probes: Sequence[Probe], dtypes: Sequence[str], newest: Mapping[str, str], only: frozenset[str], folder: Path
) -> Iterator[Row]:
    """Yield a row a target and evidence; a probe and dtype stand in that of the strongest.

    What an older Triton was seen to do by stronger evidence, as one that ran, comes first.
    """
    cells = [(p, d) for p in probes for d in dtypes if d in p.dtypes]
    for target, minor in newest.items():
        newer: Found = {}
        rows: list[Row] = []
        for version in reversed(files.versions(target, folder)):
            records = files.read(version, target, folder, only)
            found = {c: b for c in cells if (b := best(records, c[0].name, c[1])) is not None}
            stronger = {c: b for c, b in found.items() if version == minor or _stronger(b, newer.get(c))}
            rows += _rows_of(stronger, len(probes) > 1, target, version, only, folder)
            newer = {**found, **newer, **stronger}
        yield from sorted(rows, key=lambda row: -row.evidence.rank)


def _stronger(found: tuple[Evidence, Record], newer: tuple[Evidence, Record] | None) -> bool:
    return newer is not None and found[0].rank > newer[0].rank


def _rows_of(found: Found, several: bool, target: str, minor: str, only: frozenset[str], folder: Path) -> Iterator[Row]:
    alike = contract(minor, folder, only)
    for evidence in dict.fromkeys(e for e, _ in found.values()):
        labels = {c: f"{c[0].name} {c[1]}" if several else c[1] for c, b in found.items() if b[0] is evidence}
        passed = {c for c in labels if found[c][1].outcome is Outcome.PASS}
        spans = {label: span(p.name, d, target, folder, only).text for (p, d), label in labels.items()}
        yield Row(
            target,
            files.version_of(minor, target, folder),
            evidence,
            {label: found[c][1].how for c, label in labels.items() if c in passed},
            {label: _refusal(c, found[c][1], target, alike) for c, label in labels.items() if c not in passed},
            {label: text for label, text in spans.items() if text},
        )


def _refusal(cell: tuple[Probe, str], record: Record, target: str, alike: Collection[tuple[str, str]]) -> Refusal:
    probe, dtype = cell
    use = use_instead(probe.name, dtype, target)
    return Refusal(record.outcome, record.error, use, not probe.vendor and (probe.name, dtype) in alike)


def use_instead(probe: str, dtype: str, target: str, folder: Path = FOLDER) -> str:
    """Return what to use where a probe does not pass, or an empty text where nothing is known."""
    for entry in _advice_for(probe, folder):
        given = ((entry.get("dtype", "*"), dtype), (entry.get("target", "*"), target))
        if all(_fits(patterns, value) for patterns, value in given):
            return entry["use"]
    return ""


@cache
def _advice_for(probe: str, folder: Path) -> list[dict[str, str]]:
    return [entry for entry in advice(folder).get("instead", []) if _fits(entry.get("probe", "*"), probe)]


def _fits(patterns: str, value: str) -> bool:
    return any(fnmatchcase(value, p) for p in patterns.split())
