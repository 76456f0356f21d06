"""Recorded launches as rows and cells: a case a kernel, a sample a distinct launch."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from portability.backend import FLOATS, INTEGERS, discover
from portability.model import CaseInfo, Cell, SampleInfo, Target
from portability.record.arguments import storages, tensors
from portability.record.model import Call, Recording

DTYPES = {*FLOATS, *INTEGERS, "uint16", "uint32", "uint64"}
DTYPES |= {f"float8_{n}" for n in ("e4m3fn", "e5m2", "e4m3fnuz", "e5m2fnuz")}
MOST_BYTES = 2**26  # of all tensors of a launch that is interpreted
MOST_PROGRAMS = 1024  # that are interpreted of a launch; the others are left out and a warning says so
UNSAID = re.compile(r"[^A-Za-z0-9_.:]+")  # what a cell's id has no room for


@dataclass(frozen=True)
class Launched:
    """One distinct launch of a kernel, with the configurations that it was tuned over."""

    name: str  # of the kernel among those of all packages: "liger_kernel:_rms_norm_forward_kernel"
    package: str
    calls: tuple[Call, ...]

    @property
    def dtype(self) -> str:
        """That of the first floating tensor, or the first tensor."""
        given = [t["dtype"] for v in self.calls[0].arguments.values() for t in tensors(v) if t["dtype"] in DTYPES]
        return next((d for d in given if d.startswith(("float", "bfloat"))), next(iter(given), "int32"))

    @cached_property
    def sample(self) -> str:
        """The first tensor's shape, and what tells the launch from others of that shape."""
        call = self.calls[0]
        shapes = ["x".join(map(str, t["shape"])) for v in call.arguments.values() for t in tensors(v)]
        mark = hashlib.sha256("".join(c.identity for c in self.calls).encode()).hexdigest()[:6]
        return f"{shapes[0]}-{mark}" if shapes and shapes[0] else mark

    @property
    def file(self) -> str:
        """The kernel's file as it lies in its package."""
        return self.calls[0].short_file

    def cell(self, target: Target) -> Cell:
        """Return its cell on a target."""
        return Cell(self.name, self.dtype, self.sample, target.id, target.environment)


def launched(recording: Recording, names: Mapping[tuple[str, str], str] | None = None) -> list[Launched]:
    """Return what is to be compiled: configurations of one tuned launch belong together.

    `names` are those of `names_of` where more than one recording is looked at.
    """
    groups: dict[tuple[str, ...], list[Call]] = {}
    for call in recording.launches:
        key = (call.module, call.kernel, call.tuning) if call.tuning else (call.identity,)
        groups.setdefault(key, []).append(call)
    names = names or names_of(recording.launches)
    return [Launched(names[c[0].module, c[0].kernel], package_of(c[0]), tuple(c)) for c in groups.values()]


def first_of_each(launches: Iterable[Launched]) -> list[Launched]:
    """Return each kernel's first launch; two of one name in one module are two."""
    found: dict[tuple[str, str, int], Launched] = {}
    for x in launches:
        found.setdefault((x.calls[0].module, x.calls[0].kernel, x.calls[0].line), x)
    return list(found.values())


def origins(recordings: Sequence[Recording]) -> dict[tuple[str, str], str]:
    """Return for each kernel and sample the test that launched it first, and how many others did."""
    found: dict[tuple[str, str], str] = {}
    names = names_of(c for r in recordings for c in r.launches)
    for recording in recordings:
        for launch in launched(recording, names):
            tests = dict.fromkeys(t for c in launch.calls for g in c.grids for t in g.tests)
            if tests:
                more = f" and {len(tests) - 1} more" if len(tests) > 1 else ""
                found.setdefault((launch.name, launch.sample), f"{recording.tests[next(iter(tests))]}{more}")
    return found


def package_of(call: Call) -> str:
    """Return the package that a kernel is of; a program's own file stands for itself, and what is generated for all."""
    if call.origin == "inductor":
        return call.origin
    if call.package:
        return call.package
    return Path(call.file).stem if call.module == "__main__" else call.module.partition(".")[0]


def small(launch: Launched) -> bool:
    """Return whether a launch is small enough to be interpreted, and the memory of its tensors is known."""
    given = [t for v in launch.calls[0].arguments.values() for t in tensors(v)]
    return all("storage" in t for t in given) and sum(storages(given).values()) <= MOST_BYTES


def infos(several: Iterable[Launched]) -> list[CaseInfo]:
    """Return what the results file says of the kernels."""
    from portability.table import PACKAGE  # what makes tables is nothing that a runner of another environment has

    found: dict[str, list[Launched]] = {}
    for x in several:
        found.setdefault(x.name, []).append(x)
    return [
        CaseInfo(
            name=name, dtypes=tuple(dict.fromkeys(x.dtype for x in some)),
            samples=tuple(SampleInfo(s) for s in dict.fromkeys(x.sample for x in some)), file=some[0].file,
            group=f"{PACKAGE}{some[0].package}", summary=f"recorded launch of {some[0].calls[0].module}",
        )
        for name, some in found.items()
    ]  # fmt: skip


def recordable() -> list[str]:
    """Return the targets that a program can be told of while its launches are recorded."""
    from portability.device import DeviceBackend

    return [t for a in discover().values() if isinstance(a, DeviceBackend) for t in a.targets]


def names_of(calls: Iterable[Call]) -> Mapping[tuple[str, str], str]:
    """Return a short name for each module and kernel.

    Where a package has two of one name, as much of the modules' names is in it as tells them apart; modules that a
    package writes while it runs have names that say nothing.
    """
    modules: dict[tuple[str, str], dict[str, bool]] = {}
    for call in calls:
        modules.setdefault((package_of(call), call.kernel), {})[call.module] = call.origin == "written"
    made: dict[tuple[str, str], str] = {}
    for (package, kernel), several in modules.items():
        parts = _distinct([m for m, written in several.items() if written])
        for module, written in several.items():
            within = "".join(f"{part}." for part in module.split(".")[-parts:]) if parts and written else ""
            made[module, kernel] = UNSAID.sub("_", f"{package}:{within}{kernel}")
    return made


def _distinct(modules: Sequence[str]) -> int:
    """Return how many of their last parts tell modules apart; 0 for a single one, or none."""
    if len(modules) < 2:
        return 0
    most = max(m.count(".") + 1 for m in modules)
    return next(n for n in range(1, most + 1) if len({tuple(m.split(".")[-n:]) for m in modules}) == len(modules))
