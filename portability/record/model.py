"""What is recorded of a program: its Triton launches, each distinct one once, as one JSON file.

    {"format": "portability-launches", "version": 1, "target": "cuda:90", "ran": false, "tests": […], "launches": […]}

A recording is read on other machines than the one that made it. Neither torch nor triton is imported.
"""

from __future__ import annotations

import dataclasses
import gzip
import json
import os
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePath
from typing import Any

from portability.model import from_json, to_json

FORMAT = "portability-launches"
VERSION = 1
GZIP = b"\x1f\x8b"  # begins a compressed file


class RecordingError(ValueError):
    """A file of launches that cannot be read or written; the message names the file."""


@dataclass(frozen=True)
class Grid:
    """One size that a kernel was launched with, how often, and by which tests."""

    size: tuple[int, ...]
    times: int = 1
    tests: tuple[int, ...] = ()  # places in the recording's `tests`

    @property
    def programs(self) -> int:
        """How many programs it has."""
        total = 1
        for n in self.size:
            total *= n
        return total


@dataclass(frozen=True)
class Call:
    """One distinct launch: what is compiled, and what it was launched with."""

    kernel: str  # the jitted function's qualified name
    module: str
    file: str  # absolute, where it was recorded
    line: int  # of `def`
    digest: str  # of the kernel's source
    arguments: Mapping[str, Any] = field(default_factory=dict)  # as `arguments.encode` writes them
    options: Mapping[str, Any] = field(default_factory=dict)  # num_warps and the like, as written at the launch
    signature: Mapping[str, str] = field(default_factory=dict)  # Triton's type of each argument
    constants: Mapping[str, str] = field(default_factory=dict)
    attributes: Mapping[str, str] = field(default_factory=dict)  # divisible by 16, and what else the target asks
    grids: tuple[Grid, ...] = ()
    config: str = ""  # the autotune configuration
    tuning: str = ""  # names the launch that configurations were tried for; empty where nothing is tuned
    origin: str = "written"  # or "generated" by its package while it ran, or "inductor": by torch.compile
    package: str = ""  # that it belongs to; empty for the first part of `module`
    source: str = ""  # of a kernel that no module holds: its function, or the whole module where it was generated
    closure: Mapping[str, Any] = field(default_factory=dict)  # what such a function takes from around it, encoded
    jit: Mapping[str, Any] = field(default_factory=dict)  # and the arguments of its decorator
    error: str = ""  # what it raised when it was recorded

    @property
    def launches(self) -> int:
        """How often it was launched."""
        return sum(g.times for g in self.grids)

    @property
    def short_file(self) -> str:
        """Its file from its package on: a path that is the same on every machine."""
        parts, package = PurePath(self.file).parts, self.module.partition(".")[0]
        if self.origin != "written":
            return parts[-1] if parts else ""  # of a cache, whose folder says nothing
        at = max((i for i, p in enumerate(parts) if p == package), default=len(parts) - 2)
        return "/".join(parts[max(at, 0) :])

    @cached_property
    def identity(self) -> str:
        """Equal for launches that compile alike, wherever their package is installed or writes its modules."""
        module = self.module if self.origin == "written" else ""
        file = self.short_file if self.origin == "written" else ""
        plain = dataclasses.replace(self, module=module, file=file, grids=(), arguments={}, error="", tuning="")
        return json.dumps(to_json(plain), sort_keys=True)


@dataclass(frozen=True)
class Recording:
    """The launches of one program."""

    target: str  # that the program was told of, or ran on
    ran: bool = False  # whether it ran on a device; else its launches went into nothing
    program: tuple[str, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    paths: tuple[str, ...] = ()  # where its modules are imported from
    variables: Mapping[str, str] = field(default_factory=dict)  # of the environment, that the program set itself
    tests: tuple[str, ...] = ()
    launches: tuple[Call, ...] = ()

    @property
    def summary(self) -> str:
        """What is in it, in one line."""
        kernels = len({(c.module, c.kernel) for c in self.launches})
        how = "ran" if self.ran else "into nothing"
        return f"{len(self.launches)} distinct launches of {kernels} kernels ({self.target}, {how})"


def compiler_of(target: str) -> str:
    """Return what a target has in common with those that a program may take for it: "cuda" of "cuda:90"."""
    return target.partition(":")[0]


def write(path: Path, recording: Recording) -> None:
    """Write a recording, whole or not at all. Raises `RecordingError`."""
    data = {"format": FORMAT, "version": VERSION, **to_json(recording)}
    launches = ",\n".join(json.dumps(call) for call in data.pop("launches", []))
    text = f'{json.dumps(data)[:-1]}, "launches": [\n{launches}\n]}}\n'  # a launch a line
    partial = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.write_text(text, encoding="ascii")
        partial.replace(path)
    except OSError as error:
        raise RecordingError(f"{path}: cannot be written: {error.strerror or error}") from error


def read(path: Path) -> Recording:
    """Return the recording in a file, which may be compressed by gzip.

    Raises `RecordingError` for what is none, and for a newer version.
    """
    try:
        held = path.read_bytes()
        data = json.loads(gzip.decompress(held) if held.startswith(GZIP) else held)
    except (OSError, EOFError, zlib.error) as error:
        raise RecordingError(f"{path}: cannot be read: {getattr(error, 'strerror', '') or error}") from error
    except ValueError as error:
        raise RecordingError(f"{path}: no JSON: {error}") from None
    if not isinstance(data, dict) or data.pop("format", None) != FORMAT:
        raise RecordingError(f"{path}: no launches in it; `portability record -o {path.name} -- PROGRAM` records some")
    version = data.pop("version", None)
    if version != VERSION:
        raise RecordingError(f"{path}: version {version!r} of {FORMAT}; {VERSION} is read here")
    try:
        return from_json(Recording, data)
    except ValueError as error:
        raise RecordingError(f"{path}: {error}") from None


def merge(recordings: Iterable[Recording]) -> Recording:
    """Return the recordings of several processes of one program as one. Raises `ValueError` for none."""
    several = list(recordings)
    tests: dict[str, int] = {}
    calls: dict[str, Call] = {}
    for recording in several:
        here = [tests.setdefault(name, len(tests)) for name in recording.tests]
        for call in recording.launches:
            grids = tuple(dataclasses.replace(g, tests=tuple(here[i] for i in g.tests)) for g in call.grids)
            moved = dataclasses.replace(call, grids=grids)
            known = calls.get(moved.identity)
            calls[moved.identity] = moved if known is None else _joined(known, moved)
    return dataclasses.replace(
        several[0],
        paths=tuple(dict.fromkeys(p for r in several for p in r.paths)),
        variables={n: v for r in several for n, v in r.variables.items()},
        tests=tuple(tests),
        launches=tuple(calls.values()),
    )


def _joined(a: Call, b: Call) -> Call:
    """Return one record of two launches that compile alike, with the arguments of the smaller."""
    grids: dict[tuple[int, ...], Grid] = {g.size: g for g in a.grids}
    for g in b.grids:
        known = grids.get(g.size)
        tests = tuple(dict.fromkeys((*known.tests, *g.tests))) if known else g.tests
        grids[g.size] = Grid(g.size, g.times + (known.times if known else 0), tests)
    smallest = min((a, b), key=lambda c: min((g.programs for g in c.grids), default=0))
    return dataclasses.replace(smallest, grids=tuple(grids.values()))
