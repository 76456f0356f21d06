"""Checks that need neither a compiler nor a device: what an adapter states, and how its statements fit each other."""

from __future__ import annotations

import pickle
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any

from portability.backend import Backend, Launch, Limits, check_launch, look_up_blocks, read_blocks
from portability.conformance.model import Result, Verdict, result
from portability.kernel import Blocks
from portability.model import CaseInfo, Target, from_json, to_json
from portability.tuning import OPTIONS

ID = re.compile(r"[A-Za-z0-9_.:]+")  # it is part of a test's id
PAST = 2**31 - 1  # a limit of a grid that no 32-bit count goes past


# ----------------------------------------------------------------------------------------------------- contract


def contract(adapter: Backend, known_dtypes: frozenset[str]) -> Result:
    """Hold the attributes against the contract."""
    problems = [*_names(adapter), *_tables(adapter, known_dtypes)]
    for method in ("status", "open"):
        if getattr(type(adapter), method) is getattr(Backend, method):
            problems.append(f"{method}() is not defined")
    return result("contract", problems, f"{len(adapter.targets)} targets, {len(adapter.families)} families")


def _names(adapter: Backend) -> Iterator[str]:
    if not re.fullmatch(r"[A-Za-z0-9_-]+", adapter.name):
        yield f"name {adapter.name!r}: letters, digits, '_' and '-' are taken"
    if not adapter.targets:
        yield "targets: at least one is needed, of which something can be said without its hardware"
    yield from (
        f"target {t!r}: letters, digits, '.', '_' and ':' are taken" for t in adapter.targets if not ID.fullmatch(t)
    )
    yield from (f"target {t!r} is listed twice" for t in adapter.targets if list(adapter.targets).count(t) > 1)
    for family, members in adapter.families.items():
        yield from (f"family {family!r} has no member" for _ in [0] if not members)
        yield from (f"{family!r} is a family and a target" for _ in [0] if family in adapter.targets)
    for target in adapter.targets:
        wrong = [f for f in adapter.families_of(target) if f not in adapter.families]
        yield from (f"families_of({target!r}) names {f!r}, which is no family" for f in wrong)


def _tables(adapter: Backend, known_dtypes: frozenset[str]) -> Iterator[str]:
    listed = {t for members in adapter.families.values() for t in members} | set(adapter.targets)
    places = {"*", *listed, *adapter.families}
    for name in ("titles", "dtypes", "limits"):
        table: Mapping[str, Any] = getattr(adapter, name)
        extra = set(table) - places - (_unlisted(adapter, table) if name != "dtypes" else set())
        yield from (f"{name}[{key!r}] is no target, family or '*'" for key in sorted(extra))
    for key, dtypes in adapter.dtypes.items():
        yield from (f"dtypes[{key!r}]: {d!r} is no dtype of torch" for d in dtypes if d not in known_dtypes)
    yield from (f"{t}: no dtype is claimed" for t in adapter.targets if not adapter.lookup(adapter.dtypes, t, ()))
    yield from (f"limits[{k!r}] is no Limits" for k, v in adapter.limits.items() if not isinstance(v, Limits))


def _unlisted(adapter: Backend, table: Mapping[str, Any]) -> set[str]:
    """Architectures in no list that the adapter still knows the family of."""
    kinds = {t.partition(":")[0] for t in adapter.targets}
    return {key for key in table if key.partition(":")[0] in kinds and adapter.families_of(key)}


# ----------------------------------------------------------------------------------------------------- crossing


def crossing(adapter: Backend, targets: Sequence[Target]) -> Result:
    """Send everything that is sent, there and back."""
    problems = []
    for target in targets:
        if from_json(Target, to_json(target)) != target:
            problems.append(f"{target.id}: as JSON it comes back as another")
    for name, value in {
        "the adapter": adapter,
        **{f"limits of {t.id}": adapter.limits_of(t.id) for t in targets},
    }.items():
        try:
            back = pickle.loads(pickle.dumps(value))
        except Exception as error:  # whatever a class raises on its way is what is wrong with it
            problems.append(f"{name} cannot be pickled: {type(error).__name__}: {error}")
            continue
        if isinstance(value, Limits) and back != value:
            problems.append(f"{name}: pickled, they come back as others")
    return result("crossing", problems, f"{len(targets)} targets as JSON; the adapter and its limits by pickle")


# ------------------------------------------------------------------------------------------------------- limits


def limits(adapter: Backend, target: str) -> Result:
    """Hold a target's limits against each other, and see what goes past them refused."""
    found = adapter.limits_of(target)
    problems = [*_consistent(found), *_refused(found)]
    stated = sum(getattr(found, f.name) not in (None, f.default) for f in fields(Limits) if f.name != "buffers")
    return result("limits", problems, f"{stated} stated, from {found.source}", target)


def _consistent(found: Limits) -> Iterator[str]:
    if not found.source:
        yield "no source is named"
    for name in ("shared_memory", "threads", "warp", "registers", "units", "unit_warps", "grid_total", "tensor_memory"):
        value = getattr(found, name)
        if value is not None and value <= 0:
            yield f"{name} = {value}"
    if found.threads and found.warp and found.threads % found.warp:
        yield f"{found.threads} threads are no multiple of a warp of {found.warp}"
    if found.shared_memory and found.unit_shared_memory and found.shared_memory > found.unit_shared_memory:
        has = found.unit_shared_memory
        yield f"a program may use {found.shared_memory} B of shared memory, and a compute unit has {has}"
    if found.threads and found.warp and found.unit_warps and found.threads > found.unit_warps * found.warp:
        yield f"a program may have {found.threads} threads, and a compute unit holds {found.unit_warps * found.warp}"
    if found.registers and not found.unit_warps:
        yield "registers are stated and unit_warps are not: occupancy needs both"
    yield from (f"buffers[{n!r}] = {size}" for n, size in found.buffers.items() if size <= 0)


def _refused(found: Limits) -> Iterator[str]:
    for axis, most in enumerate(found.grid):
        grid = tuple(most + 1 if a == axis else 1 for a in range(3))
        if most < PAST and not check_launch(found, Launch("k", grid=grid)):
            yield f"a grid of {most + 1} along axis {axis} is not refused"
    if found.grid_total is not None and not check_launch(found, Launch("k", grid=(found.grid_total + 1,))):
        yield f"{found.grid_total + 1} programs are not refused"
    if found.threads and found.warp:
        warps = found.threads // found.warp
        if check_launch(found, Launch("k", grid=(1,), num_warps=warps)):
            yield f"{warps} warps, which {found.threads} threads are, are refused"
        if not check_launch(found, Launch("k", grid=(1,), num_warps=2 * warps)):
            yield f"{2 * warps} warps are not refused"


# ------------------------------------------------------------------------------------------------------- blocks


def blocks(adapter: Backend, cases: Sequence[CaseInfo], known_dtypes: frozenset[str]) -> Result:
    """Hold the block table against the kernels that there are."""
    path = adapter.block_table()
    if not path.exists():
        return Result("blocks", Verdict.PASS, f"no {path.name}: every kernel takes its own default")
    try:
        table = read_blocks(path)
    except ValueError as error:
        return Result("blocks", Verdict.FAIL, str(error))
    by_name = {c.name: c for c in cases}
    problems = [
        p for kernel, entries in table.items() for p in _entries(adapter, by_name, kernel, entries, known_dtypes)
    ]
    for case in cases:
        for target in adapter.targets:
            default = Blocks(dict(case.blocks))
            found = look_up_blocks(adapter, case.name, target, case.dtypes[0], default).blocks
            problems += [f"{case.name} on {target}: no {n}" for n in case.blocks if n not in found]
    own = sum(c.name in table for c in cases if c.blocks)
    having = sum(bool(c.blocks) for c in cases)
    return result("blocks", problems, f"{own} of {having} kernels with blocks have entries, the others their defaults")


def _entries(
    adapter: Backend, cases: Mapping[str, CaseInfo], kernel: str, entries: Mapping[str, Any], dtypes: frozenset[str]
) -> Iterator[str]:
    if kernel not in cases:
        yield f"[{kernel}]: no kernel has that name"
        return
    case = cases[kernel]
    names = {*case.blocks, *case.space, *OPTIONS, "found"}
    places = {"*", *adapter.targets, *adapter.families}
    for selector, entry in entries.items():
        place, _, dtype = selector.partition("/")
        if place not in places and not adapter.families_of(place):
            yield f'[{kernel}."{selector}"]: {place!r} is no target, family or "*"'
        if dtype and dtype not in dtypes:
            yield f'[{kernel}."{selector}"]: {dtype!r} is no dtype of torch'
        yield from (f'[{kernel}."{selector}"]: no block is named {n!r}' for n in entry if n not in names)
        wrong = [n for n, v in entry.items() if n != "found" and not isinstance(v, int)]
        yield from (f'[{kernel}."{selector}"]: {n} = {entry[n]!r} is no whole number' for n in wrong)
