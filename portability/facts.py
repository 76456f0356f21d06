"""What is known of a target beyond its limits: the device, its memories, its matrix instructions, its software.

The facts of an adapter lie beside its block table (`rocm.toml`, `rocm.facts.toml`), keyed as that is: "*", a family, a
target, the most specific entry winning name by name. Every entry says where it is from:

    ["hip:gfx942".memory."L2 cache"]
    is = "32 MiB, 4 MiB for each of 8 dies"
    source = "AMD GPU specifications, ROCm documentation"

Neither torch nor triton is imported.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import tomllib

from portability.backend import Backend
from portability.tomltable import Table

SECTIONS = ("device", "compute", "memory", "matrix", "software", "triton")
# Entries of [triton] that a port compares: two sentences, and a list of dtypes as torch names them.
STAGES, WARPS, FLOAT8 = "num_stages", "num_warps", "float8 of the hardware"


@dataclass(frozen=True)
class Fact:
    """One thing that is known, and from where."""

    name: str
    value: str
    source: str


@dataclass(frozen=True)
class Facts:
    """What is known of one target, by section, in the file's order."""

    sections: Mapping[str, tuple[Fact, ...]]

    def of(self, section: str, name: str) -> str:
        """Return a value, "" where it is not known."""
        return next((f.value for f in self.sections.get(section, ()) if f.name == name), "")

    @property
    def stages(self) -> str:
        """What `num_stages` does there."""
        return self.of("triton", STAGES)

    @property
    def warps(self) -> str:
        """What `num_warps` does there, where it is not warps of the usual kind."""
        return self.of("triton", WARPS)

    @property
    def float8(self) -> tuple[str, ...] | None:
        """The float8 formats that the hardware has, as torch names them; None where that is not known."""
        names = self.of("triton", FLOAT8)
        return tuple(n for n in names.split(", ") if n != "none") if names else None


def path_of(adapter: Backend) -> Path:
    """Return where an adapter's facts are, whether or not there are any."""
    return adapter.block_table().with_suffix(".facts.toml")


def facts_of(adapter: Backend, target: str) -> Facts:
    """Return what is known of a target. Raises `MatrixError` where the file is not what it should be."""
    table = _read(path_of(adapter))
    merged: dict[str, dict[str, Fact]] = {section: {} for section in SECTIONS}
    for selector in ("*", *reversed(adapter.families_of(target)), target):
        for section, facts in table.get(selector, {}).items():
            merged[section] |= facts
    return Facts({section: tuple(facts.values()) for section, facts in merged.items()})


@cache
def _read(path: Path) -> Mapping[str, Mapping[str, Mapping[str, Fact]]]:
    if not path.exists():
        return {}
    data = Table(path.name, "", tomllib.loads(path.read_text(encoding="utf-8")), None)
    return {selector: _selector(path.name, selector, data.tables(selector)) for selector in data.data}


def _selector(file: str, selector: str, data: Any) -> Mapping[str, Mapping[str, Fact]]:
    table = Table(file, f'["{selector}"]', data, (*SECTIONS, "source"))
    source = table.text("source")  # of every entry that names none of its own
    return {s: _section(file, f'["{selector}".{s}]', table.tables(s), source) for s in SECTIONS if s in table.data}


def _section(file: str, label: str, data: Any, source: str) -> Mapping[str, Fact]:
    table = Table(file, label, data, None)
    found = {}
    for name in table.data:
        if isinstance(table.data[name], str):
            found[name] = Fact(name, table.text(name), source)
        else:
            entry = Table(file, f'{label[:-1]}."{name}"]', table.tables(name), ("is", "source"))
            found[name] = Fact(name, entry.text("is"), entry.text("source", source))
        if not found[name].value or not found[name].source:
            table.refuse(name, table.data[name], "what it is, and a source, are needed")
    return found


def limits_as_facts(adapter: Backend, target: str) -> tuple[Fact, ...]:
    """Return the target's limits, each with the source that the adapter names for them."""
    limits = adapter.limits_of(target)
    source = limits.source or "not stated by the adapter"
    said = {
        "shared memory of a program": _bytes(limits.shared_memory),
        "shared memory of a compute unit": _bytes(limits.unit_shared_memory),
        "threads of a program": _number(limits.threads),
        "registers of a compute unit": _number(limits.registers, " of 32 bits"),
        "warps of a compute unit": _number(limits.unit_warps),
        "programs of a compute unit": _number(limits.unit_blocks),
        "tensor memory": _number(limits.tensor_memory, " columns"),
        **{f"{name} of a core": _bytes(size) for name, size in limits.buffers.items()},
        "grid": " x ".join(f"{n:,}" for n in limits.grid),
        "programs in all": _number(limits.grid_total),
        "threads along x": _number(limits.grid_threads),
        "an empty grid": "" if limits.grid_empty else "is refused",
    }
    return tuple(Fact(name, value, source) for name, value in said.items() if value)


def compute_as_facts(adapter: Backend, target: str) -> tuple[Fact, ...]:
    """Return compute units and lanes, as far as the limits state them."""
    limits = adapter.limits_of(target)
    source = limits.source or "not stated by the adapter"
    said = {"compute units": _number(limits.units), "lanes of a warp": _number(limits.warp)}
    return tuple(Fact(name, value, source) for name, value in said.items() if value)


def _number(value: int | None, unit: str = "") -> str:
    return f"{value:,}{unit}" if value is not None else ""


def _bytes(value: int | None) -> str:
    return f"{value:,} B ({value / 1024:g} KiB)" if value is not None else ""


def described(facts: Facts, adapter: Backend, target: str) -> Facts:
    """Return the facts with what the adapter itself states: compute units and lanes first, and the limits last."""
    compute = {f.name: f for f in (*compute_as_facts(adapter, target), *facts.sections.get("compute", ()))}
    sections = {**facts.sections, "compute": tuple(compute.values()), "limits": limits_as_facts(adapter, target)}
    return replace(facts, sections=sections)
