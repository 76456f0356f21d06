"""How much of the language works where: a percentage by target and group, and what changed between two versions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from portability.baselines import files
from portability.baselines.answers import newest_of
from portability.baselines.files import FOLDER, Probe, Record
from portability.baselines.history import Changed, best, changes, contract
from portability.model import Evidence, Outcome

ALL = "all"
# What a backend's adapter is called where its targets are named otherwise.
OWNERS = {"hip": "rocm", "npu": "ascend"}


@dataclass(frozen=True)
class Share:
    """What of a group works on a target."""

    target: str
    triton: str
    evidence: Evidence  # the weakest of what counts
    group: str
    passed: int
    counted: int  # without what follows
    contract: int  # refused by every target: the language's own contract
    foreign: int  # extensions of the language by other vendors

    @property
    def percent(self) -> int:
        """Down to whole percent: 100 % is all of them."""
        return 100 * self.passed // self.counted if self.counted else 0


def coverage(targets: Sequence[str] = (), folder: Path = FOLDER) -> list[Share]:
    """Return a share a target and group, and of all groups, in the newest recorded Triton of each target."""
    return [share for target, minor in newest_of(targets, folder).items() for share in _shares(target, minor, folder)]


def _shares(target: str, minor: str, folder: Path) -> Iterator[Share]:
    records, alike, probes = files.read(minor, target, folder), contract(minor, folder), files.probes(folder)
    backend = target.partition(":")[0]
    kinds: dict[str, Counter[str]] = {ALL: Counter()}
    weakest: dict[str, Evidence] = {}
    for probe, dtype in dict.fromkeys(key[:2] for key in records if key[0] in probes):
        found = best(records, probe, dtype)
        assert found is not None, "it is a key of these records"
        kind = _kind(probes[probe], (probe, dtype) in alike, OWNERS.get(backend, backend), found[1].outcome)
        for group in (probes[probe].group, ALL):
            kinds.setdefault(group, Counter())[kind] += 1
            weakest[group] = min(weakest.get(group, found[0]), found[0], key=lambda e: e.rank)
    for group, counts in sorted(kinds.items(), key=lambda item: (item[0] == ALL, item[0])):
        counted = counts["passed"] + counts["refused"]
        yield Share(
            target, files.version_of(minor, target, folder), weakest.get(group, Evidence.NONE), group,
            counts["passed"], counted, counts["contract"], counts["foreign"],
        )  # fmt: skip


def _kind(probe: Probe, alike: bool, backend: str, outcome: Outcome) -> str:
    if outcome is Outcome.PASS:
        return "passed"
    return "foreign" if probe.vendor not in ("", backend) else "contract" if alike else "refused"


@dataclass(frozen=True)
class Names:
    """Of names that begin alike, how many work on a target at one dtype at least."""

    works: int = 0
    absent: int = 0  # the target's own Triton has no such name
    total: int = 0


def names(target: str, minor: str, folder: Path = FOLDER) -> Mapping[str, Names]:
    """Return how many names work on a target, by their first part: "tl", "tensor", "libdevice".

    Extensions by other vendors do not count, nor names of which nothing is recorded.
    """
    records, backend = files.read(minor, target, folder), target.partition(":")[0]
    found: dict[str, list[Record]] = {}
    for probe in files.probes(folder).values():
        if probe.vendor in ("", OWNERS.get(backend, backend)):
            recorded = [b[1] for d in probe.dtypes if (b := best(records, probe.name, d)) is not None]
            for name in probe.names if recorded else ():
                found.setdefault(name, []).extend(recorded)
    by_space: dict[str, Names] = {}
    for name, of_name in sorted(found.items()):
        n = by_space.get(name.partition(".")[0], Names())
        works = any(r.outcome is Outcome.PASS for r in of_name)
        absent = all(f"has no attribute '{name.rpartition('.')[2]}'" in r.error for r in of_name)
        by_space[name.partition(".")[0]] = Names(n.works + works, n.absent + absent, n.total + 1)
    return by_space


def coverage_text(targets: Sequence[str] = (), folder: Path = FOLDER) -> str:
    """Return the percentages as a table: groups by targets."""
    from tabulate import tabulate

    shares = coverage(targets, folder)
    columns = list(dict.fromkeys(s.target for s in shares))
    cells = {(s.group, s.target): s for s in shares}
    groups = sorted({s.group for s in shares}, key=lambda g: (g == ALL, g))
    heads = ["group", *(f"{t}\n{(s := cells[ALL, t]).evidence}\nTriton {files.minor_of(s.triton)}" for t in columns)]
    rows = [[g, *(_percent(cells.get((g, t))) for t in columns)] for g in groups]
    pieces = [[0, *range(i + 1, min(i + 8, len(columns) + 1))] for i in range(0, len(columns), 7)]
    tables = [
        tabulate([[row[i] for i in piece] for row in rows], [heads[i] for i in piece], "simple") for piece in pieces
    ]
    newest = newest_of(targets, folder)
    ends = [f"{t}: {_left_out(cells[ALL, t])}\n{_names_text(names(t, newest[t], folder))}" for t in columns]
    title = "Of probes and dtypes, how many work, by the strongest evidence that is recorded for each:"
    return "\n\n".join((title, *tables, "\n".join(ends))) + "\n"


def _percent(share: Share | None) -> str:
    if share is None or not share.counted:
        return "-"
    return f"{share.percent} %"


def _names_text(found: Mapping[str, Names]) -> str:
    told = ", ".join(
        f"{space} {n.works} of {n.total}{f' ({n.absent} absent)' if n.absent else ''}"
        for space, n in found.items()
        if n.total > 1  # not print, range, if
    )
    return f"  names that work at one dtype at least: {told}"


def _left_out(s: Share) -> str:
    text = f"{s.passed} of {s.counted}"
    text += f"; not counted: {s.contract} of the language's own contract" if s.contract else ""
    return text + (f", {s.foreign} of other vendors' extensions" if s.foreign else "")


# -------------------------------------------------------------------------------------------------- changes


def changes_data(old: str, new: str, folder: Path = FOLDER) -> list[Mapping[str, Any]]:
    """Return what changed as plain data. Raises `ValueError` for a version without a baseline."""
    return [
        {"probe": c.key[0], "dtype": c.key[1], "evidence": str(c.key[2]), "target": c.target, "kind": c.kind,
         "before": str(c.before.outcome), "after": str(c.after.outcome), "error": c.after.error or c.before.error}
        for c in _changes(old, new, folder)
    ]  # fmt: skip


def changes_text(old: str, new: str, folder: Path = FOLDER) -> str:
    """Return what changed, a line for what is alike but for targets and dtypes."""
    alike: dict[tuple[str, ...], list[Changed]] = {}
    for c in _changes(old, new, folder):
        before, after = (f"{r.outcome}{f' ({r.how})' if r.how else ''}" for r in (c.before, c.after))
        alike.setdefault((c.kind, c.key[0], before, after, c.after.error or c.before.error), []).append(c)
    lines = [f"Triton {old} to {new}, on {', '.join(_common(old, new, folder))}:"]
    for kind in ("added", "removed", "changed"):
        for (found, probe, before, after, error), several in sorted(alike.items()):
            if found == kind:
                dtypes = ", ".join(dict.fromkeys(c.key[1] for c in several))
                where = ", ".join(dict.fromkeys(c.target for c in several))
                lines.append(
                    f"  {kind}: {probe} ({dtypes}) on {where}: {before} -> {after}{f': {error}' if error else ''}"
                )
    return "\n".join(lines if len(lines) > 1 else [*lines, "  nothing changed"]) + "\n"


def _changes(old: str, new: str, folder: Path) -> list[Changed]:
    recorded = files.versions(folder=folder)
    for minor in (old, new):
        if minor not in recorded:
            raise ValueError(f"no baseline of Triton {minor}; there are {', '.join(recorded)}")
    return list(changes(old, new, folder))


def _common(old: str, new: str, folder: Path) -> list[str]:
    return sorted({*files.targets(old, folder)} & {*files.targets(new, folder)})
