"""Which programs of a launch touch one element, at least one of them writing: why a result depends on their order.

Accesses are logged while programs run, and looked through when the launch has ended. This costs time and memory and is
meant for the run that explains a difference, not for every run.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from portability.backend import Problem
from portability.interpret.memory import Memory
from portability.interpret.report import Report, written
from portability.model import Outcome

Array = NDArray[Any]
Place = tuple[str, int]

VERBS = {"load": "reads", "store": "writes", "atomic": "updates atomically"}


@dataclass(frozen=True)
class Event:
    """One access of one program: its lanes' plain addresses, and what they store."""

    kind: str  # load, store or atomic
    program: tuple[int, int, int]
    place: Place
    addresses: Array
    size: int  # bytes a lane
    values: Array | None


class Trace:
    """The log of one launch after another. `observe` is an observer of `Access`.

    `pairs` of lines are those whose race is known already, and `early` ones those of a plain load and of an atomic that
    it may come before.
    """

    def __init__(
        self, report: Report, memory: Memory, pairs: Collection[frozenset[Place]] = (),
        early: Collection[frozenset[Place]] = (),
    ) -> None:  # fmt: skip
        self._report = report
        self._pairs = pairs
        self._early = early
        self._memory = memory
        self._events: list[Event] = []

    def observe(self, kind: str, addresses: Array, lanes: Array, size: int, values: Array | None) -> None:
        """Log an access of the running program."""
        held = None if values is None or kind != "store" else values[lanes].copy()
        place = self._report.place()
        self._events.append(Event(kind, self._report.program, place, addresses[lanes].copy(), size, held))

    def conclude(self) -> list[Problem]:
        """Return what was found in the log since the last launch, once per pair of lines, and forget the log."""
        events, self._events = self._events, []
        return [*self._collisions(events), *self._conflicts(events)]

    def _collisions(self, events: list[Event]) -> Iterator[Problem]:
        """Lanes of one store that write different values to one element."""
        for event in events:
            if event.values is None or not len(event.addresses):
                continue
            order = np.argsort(event.addresses, kind="stable")
            address, bits = event.addresses[order], _bits(event.values)[order]
            clash = np.flatnonzero((address[1:] == address[:-1]) & (bits[1:] != bits[:-1]))
            if clash.size:
                element = self._element(int(address[clash[0]]))
                first, second = sorted((int(order[clash[0]]), int(order[clash[0] + 1])))
                yield Problem(
                    Outcome.RACE, "store-collision",
                    f"{self._report.kernel}: lanes {first} and {second} of one store write different values to "
                    f"{element}, program {event.program}",
                    written(event.place),
                )  # fmt: skip

    def _conflicts(self, events: list[Event]) -> Iterator[Problem]:
        """Elements that several programs touch, of which one writes; only atomics are no race, yet have an order."""
        events = [e for e in events if len(e.addresses)]
        if len({e.program for e in events}) < 2:
            return
        seen: set[tuple[Place, Place, str]] = set()
        for address, touching in _shared(events):
            problem, key = self._judged(address, touching)
            known = key in seen or (key[2] == "race" and frozenset(key[:2]) in self._pairs)
            if problem is not None and not known:
                seen.add(key)
                yield problem

    def _judged(self, address: int, touching: list[Event]) -> tuple[Problem | None, tuple[Place, Place, str]]:
        writes = [e for e in touching if e.kind == "store"]
        first = (writes or [e for e in touching if e.kind == "atomic"])[0]
        others = [e for e in touching if e.program != first.program]
        early_ones = [e for e in others if e.kind == "load" and frozenset((e.place, first.place)) in self._early]
        code = "race" if writes or early_ones else "atomic-order"
        other = next(iter(early_ones or others), first)
        early, late = sorted((first, other), key=touching.index)
        key = (early.place, late.place, code)
        if other is first:
            return None, key
        message = (
            f"{self._report.kernel}: program {late.program} {VERBS[late.kind]} {self._element(address)}, which program "
            f"{early.program} {VERBS[early.kind]} at {written(early.place)}"
        )
        if code == "race":
            return Problem(Outcome.RACE, code, f"{message}: nothing orders them", written(late.place)), key
        message += ": sums of floats, and what an atomic returns, depend on the order"
        return Problem(Outcome.NONDETERMINISTIC, code, message, written(late.place)), key

    def _element(self, address: int) -> str:
        region = self._memory.owner(address)
        return region.element(address) if region else f"address {address:#x}"


def _bits(values: Array) -> Array:
    return np.ascontiguousarray(values).view(f"u{values.dtype.itemsize}")


def _shared(events: list[Event]) -> Iterator[tuple[int, list[Event]]]:
    """Yield each address, with its events in the order of time, that more than one program touches and one writes."""
    unit = min(e.size for e in events)
    parts = [_units(e, unit) for e in events]
    address = np.concatenate(parts)
    event = np.repeat(np.arange(len(events)), [len(p) for p in parts])
    order = np.lexsort((event, address))
    address, event = address[order], event[order]
    names = {p: i for i, p in enumerate(dict.fromkeys(e.program for e in events))}
    program = np.array([names[e.program] for e in events])[event]
    writes = np.array([e.kind != "load" for e in events])[event]
    starts = np.flatnonzero(np.append(True, address[1:] != address[:-1]))
    several = np.minimum.reduceat(program, starts) != np.maximum.reduceat(program, starts)
    shared = np.flatnonzero(several & np.logical_or.reduceat(writes, starts))
    ends = np.append(starts[1:], len(address))
    for i in shared:
        yield int(address[starts[i]]), [events[k] for k in dict.fromkeys(event[starts[i] : ends[i]].tolist())]


def _units(event: Event, unit: int) -> Array:
    """The addresses of an access in pieces of `unit` bytes."""
    steps = np.arange(0, event.size, unit, dtype=np.uint64)
    return (event.addresses[:, None] + steps).reshape(-1)
