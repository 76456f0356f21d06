"""The files of the baselines: what every API probe came to, by Triton's minor version and target.

A file a version and target, `kernels/api/baselines/3.9/cuda-90.tsv`, of tab-separated lines, sorted, so that what
changes is a line of a diff:

    # cuda:90, Triton 3.9.0
    probe   evidence  outcome        how       dtypes             error
    tl.exp  compiled  compile_error            bfloat16 float16   Expected dtype ['fp32', 'fp64'] but got fp16
    tl.exp  compiled  pass                     float32 float64

and `probes.tsv`, which says of each probe its group, its names and its dtypes. All of it is read without torch and
triton: a run is judged by it, and `portability caniuse` looks things up in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from portability.model import CaseInfo, Evidence, Outcome

FOLDER = Path(__file__).resolve().parent.parent / "kernels" / "api" / "baselines"
PROBES = "probes.tsv"
COLUMNS = ("probe", "evidence", "outcome", "how", "dtypes", "error")
PROBE_COLUMNS = ("probe", "group", "vendor", "names", "dtypes")

Key = tuple[str, str, Evidence]  # probe, dtype, how far it got


class BaselineError(ValueError):
    """A baseline that cannot be read; the message names the file, the line and what is wrong there."""


@dataclass(frozen=True)
class Record:
    """What one probe came to at one dtype, by one kind of evidence."""

    outcome: Outcome
    how: str = ""  # native, mixed or emulated, where the assembly tells
    error: str = ""  # its first line, of the innermost cause


Records = Mapping[Key, Record]


@dataclass(frozen=True)
class Probe:
    """What the index says of a probe."""

    name: str
    group: str
    vendor: str  # the backend whose own extension it is about
    names: tuple[str, ...]
    dtypes: tuple[str, ...]


# ------------------------------------------------------------------------------------------------- reading


def minor_of(version: str) -> str:
    """Return "3.9" of "3.9.0+git1"; empty where no version is given."""
    return ".".join(version.split(".")[:2])


def order(minor: str) -> tuple[int, ...]:
    """Return the key by which versions are sorted; "3.10" comes after "3.9"."""
    return tuple(int(part) for part in re.findall(r"\d+", minor))


def versions(target: str = "", folder: Path = FOLDER) -> list[str]:
    """Return the minor versions that have a baseline (of `target`), the oldest first."""
    return list(_versions(target, folder))


def targets(minor: str, folder: Path = FOLDER) -> list[str]:
    """Return the targets that have a baseline under a minor version, sorted."""
    return sorted(target for of, target in _there(folder) if of == minor)


@cache
def _versions(target: str, folder: Path) -> tuple[str, ...]:
    return tuple(sorted({minor for minor, of in _there(folder) if target in ("", of)}, key=order))


@cache
def _there(folder: Path) -> frozenset[tuple[str, str]]:
    """Return the minor versions and targets of all files."""
    return frozenset((f.parent.name, f.stem.replace("-", ":", 1)) for f in folder.glob("*/*.tsv"))


@cache
def read(minor: str, target: str, folder: Path = FOLDER, only: frozenset[str] | None = None) -> Records:
    """Return a baseline, or what it holds of the probes in `only`; an empty one where there is no file.

    Raises `BaselineError` for a line that does not fit.
    """
    path = folder / minor / f"{_stem(target)}.tsv"
    found: dict[Key, Record] = {}
    outcomes, kinds = {str(o): o for o in Outcome}, {str(e): e for e in Evidence}
    for number, cells in _lines(path, COLUMNS, only):
        probe, evidence, outcome, how, dtypes, error = cells
        if evidence not in kinds or outcome not in outcomes:
            raise BaselineError(f"{path.name}:{number}: {evidence!r} is no evidence, or {outcome!r} no outcome")
        record = Record(outcomes[outcome], how, error)
        for dtype in dtypes.split(" "):
            found[probe, dtype, kinds[evidence]] = record
    return found


@cache
def version_of(minor: str, target: str, folder: Path = FOLDER) -> str:
    """Return the version that a baseline was recorded with, "3.7.1"; the minor one where the file does not say."""
    with (folder / minor / f"{_stem(target)}.tsv").open(encoding="utf-8") as file:
        return file.readline().rpartition("Triton ")[2].strip() or minor


@cache
def probes(folder: Path = FOLDER) -> Mapping[str, Probe]:
    """Return the index: every probe by name."""
    lines = _lines(folder / PROBES, PROBE_COLUMNS)
    return {c[0]: Probe(c[0], c[1], c[2], tuple(c[3].split()), tuple(c[4].split())) for _, c in lines}


def _lines(path: Path, columns: Sequence[str], only: frozenset[str] | None = None) -> Iterator[tuple[int, list[str]]]:
    """Yield the lines of a file below its title and heading, or those of the probes in `only`, with their numbers."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return
    title, _, body = text.partition("\n")
    if not title.startswith("#") or body.partition("\n")[0] != "\t".join(columns):
        raise BaselineError(f"{path.name}: does not begin with a title and {', '.join(columns)}")
    lines = enumerate(text.split("\n")[2:-1], 3) if only is None else _of_probes(text, only)
    for number, line in lines:
        cells = line.split("\t")
        if len(cells) != len(columns):
            raise BaselineError(f"{path.name}:{number}: {line[:60]!r} is no line of {', '.join(columns)}")
        yield number, cells


def _of_probes(text: str, only: frozenset[str]) -> Iterator[tuple[int, str]]:
    """Yield the lines of some probes; those of one stand together, since files are sorted."""
    for probe in sorted(only):
        start = f"\n{probe}\t"
        at = text.find(start)
        while at >= 0:
            end = text.index("\n", at + 1)
            yield text.count("\n", 0, at) + 2, text[at + 1 : end]
            at = end if text.startswith(start, end) else -1


def _stem(target: str) -> str:
    return target.replace(":", "-")  # no colon in a file's name on Windows


# ------------------------------------------------------------------------------------------------- writing


def write(minor: str, target: str, version: str, records: Records, folder: Path = FOLDER) -> Path:
    """Write a baseline and return its file; equal records give equal bytes."""
    alike: dict[tuple[str, ...], list[str]] = {}
    for (probe, dtype, evidence), r in records.items():
        alike.setdefault((probe, str(evidence), str(r.outcome), r.how, r.error), []).append(dtype)
    lines = sorted((*key[:4], " ".join(sorted(dtypes)), key[4]) for key, dtypes in alike.items())
    return _write(folder / minor / f"{_stem(target)}.tsv", f"# {target}, Triton {version}", COLUMNS, lines)


def write_probes(cases: Iterable[CaseInfo], folder: Path = FOLDER) -> Path:
    """Write the index of the probes among `cases`, and return its file."""
    lines = sorted((c.name, c.group, c.vendor, " ".join(c.names), " ".join(c.dtypes)) for c in cases if c.names)
    return _write(folder / PROBES, "# every probe, its group and what it is about", PROBE_COLUMNS, lines)


def _write(path: Path, title: str, columns: Sequence[str], lines: Sequence[Sequence[str]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "\n".join((title, "\t".join(columns), *("\t".join(line) for line in lines))) + "\n"
    path.write_text(text, encoding="utf-8", newline="\n")
    for cached in (read, version_of, probes, _versions, _there):
        cached.cache_clear()
    return path
