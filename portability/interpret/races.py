"""Two programs and one element, of which one stores: whoever comes first, nothing says who that is.

Running the programs in another order shows most races, and not these: where both add to what they read, the sum is the
same in every order in which programs run one after another, and is lost on a device, where they run at once; and what
one program stores, another may read too early, although it never does here.
"""

from __future__ import annotations

from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from portability.backend import Problem
from portability.interpret.memory import Memory, Region
from portability.interpret.report import Report, written
from portability.model import Outcome

Array = NDArray[Any]
Program = tuple[int, int, int]
Clock = NDArray[np.int64]  # by a program's number: how many of a launch's stores, from the first, it released

MOST = 1 << 24  # lanes kept of a launch: 400 MB; what is stored after them is not looked at

NOTHING: Clock = np.zeros(0, dtype=np.int64)


class Sync(Enum):
    """What an access orders for the program that makes it."""

    NONE = "none"
    OWN = "cta"  # an atomic whose scope is its program: to other programs, an access like any other
    RELAXED = "relaxed"  # an atomic that orders nothing but itself
    ACQUIRE = "acquire"  # later accesses see what was released before; a volatile load is taken for one
    RELEASE = "release"
    BOTH = "acq_rel"

    @property
    def acquires(self) -> bool:
        """Whether what others released may be read afterwards."""
        return self in (Sync.ACQUIRE, Sync.BOTH)

    @property
    def releases(self) -> bool:
        """Whether what was stored before may be read by others."""
        return self in (Sync.RELEASE, Sync.BOTH)


class StoreLog:
    """What the programs of a launch stored, and read of each other.

    A store and a load of one element by two programs are ordered where the storing program has since released and the
    loading one has acquired before, by atomics on one address, or through other programs that did so: a vector clock
    says of each program how many stores of each other one it may see. Atomics of whole blocks are taken for ones on all
    of their tensor. Two stores are ordered where either program uses such atomics at all.

    `entangled` says whether a program used an atomic or read a tensor that the launch also stores to, since it was
    last set to False: else no order of programs can be told from another.
    """

    def __init__(self, report: Report, memory: Memory) -> None:
        self._report = report
        self._memory = memory
        self.entangled = False
        self.pairs: set[frozenset[tuple[str, int]]] = set()  # of lines that a load and a store race at, once a session
        self.clear()

    def clear(self) -> None:
        """Forget everything: a launch begins."""
        self._addresses: list[Array] = []
        self._values: list[Array] = []
        self._stores: list[tuple[Program, tuple[str, int]]] = []  # program and place of each
        self._synchronizing: set[Program] = set()
        self._acquired: set[Program] = set()
        self._number: dict[Program, int] = {}  # its place in a clock
        self._clocks: dict[Program, Clock] = {}
        self._published: dict[tuple[str, int], Clock] = {}  # what was released, by address or tensor
        self._read: set[int] = set()  # tags
        self._new: dict[int, list[int]] = {}  # by tag: stores that `_last` does not hold yet
        self._last: dict[int, NDArray[np.int32]] = {}  # by tag: the number, from 1, of each element's last store
        self._found: dict[tuple[Any, Any], Problem] = {}
        self._own: set[tuple[str, int]] = set()  # places of atomics whose scope is one program
        self._room = MOST

    def stored(self, pointers: Array, addresses: Array, lanes: Array, values: Array) -> None:
        """Note a store of the running program."""
        if self._room < addresses.size:
            return
        if lanes.all():
            where, bits = addresses.reshape(-1), _bits(values).reshape(-1)
        else:
            where, bits = addresses[lanes], _bits(np.broadcast_to(values, lanes.shape)[lanes])
        self._room -= where.size
        region = self._memory.region(pointers)
        if region is not None:
            self._new.setdefault(region.tag, []).append(len(self._stores))
            self.entangled = self.entangled or region.tag in self._read
        self._addresses.append(where)
        self._values.append(bits)
        self._stores.append((self._report.program, self._report.place()))

    def loaded(self, pointers: Array, addresses: Array, lanes: Array) -> None:
        """Note a load of the running program: of what another one stored, it may come too early."""
        region = self._memory.region(pointers)
        if region is None:
            return
        self._read.add(region.tag)
        if region.tag not in self._new:
            return
        self.entangled = True
        offset = (addresses[lanes] - np.uint64(region.low)) // np.uint64(region.itemsize)
        last = self._last_stores(region)
        for store in np.unique(last[offset[offset < len(last)]]).tolist():
            if store:
                self._judge_load(store - 1, region, offset, last)

    def updated(self, pointers: Array, addresses: Array, lanes: Array, values: Array) -> None:
        """Note an atomic of the running program whose scope is that program: others may come between."""
        self._own.add(self._report.place())
        self.loaded(pointers, addresses, lanes)
        self.stored(pointers, addresses, lanes, values)

    def synchronized(self, sync: Sync, pointers: Array, addresses: Array) -> None:
        """Note that the running program used an atomic."""
        program = self._report.program
        self.entangled = True
        region = self._memory.region(pointers)
        whole = region.storage[0] if region is not None else 0
        one = [("address", int(addresses.item()))] if addresses.size == 1 else []
        clock = self._clocks.get(program, NOTHING)
        if sync.acquires:
            self._acquired.add(program)
            for key in (*one, ("blocks of", whole)) if one else (("all of", whole),):
                clock = _later(clock, self._published.get(key, NOTHING))
        if sync.releases:
            number = self._number.setdefault(program, len(self._number))
            own = np.zeros(number + 1, dtype=np.int64)
            own[number] = len(self._stores)
            clock = _later(clock, own)
            for key in (*(one or [("blocks of", whole)]), ("all of", whole)):
                self._published[key] = _later(self._published.get(key, NOTHING), clock)
        self._clocks[program] = clock
        if sync is not Sync.RELAXED:
            self._synchronizing.add(program)

    @property
    def has_acquired(self) -> bool:
        """Whether the running program has made sure to see what was released before."""
        return self._report.program in self._acquired

    def conclude(self) -> list[Problem]:
        """Return the first race of each pair of lines in what was noted since `clear`."""
        if len({program for program, _ in self._stores} - self._synchronizing) < 2:
            return list(self._found.values())
        sizes = [a.size for a in self._addresses]
        address = np.concatenate(self._addresses)
        store = np.repeat(np.arange(len(sizes)), sizes)
        order = np.argsort(address, kind="stable")  # stable: by time within an address
        address, store = address[order], store[order]
        names = {p: i for i, p in enumerate(dict.fromkeys(p for p, _ in self._stores))}
        program = np.array([names[p] for p, _ in self._stores])[store]
        starts = np.flatnonzero(np.append(True, address[1:] != address[:-1]))
        several = np.minimum.reduceat(program, starts) != np.maximum.reduceat(program, starts)
        if not several.any():
            return list(self._found.values())
        bits = np.concatenate([v.astype(np.uint64) for v in self._values])[order]
        ends = np.append(starts[1:], len(address))
        groups = [
            (int(address[a]), store[a:b].tolist(), bits[a:b].tolist())
            for a, b in zip(starts[several], ends[several], strict=True)
        ]
        return list({**self._found, **self._judged(groups)}.values())

    def _last_stores(self, region: Region) -> NDArray[np.int32]:
        """Return the number of the last store to each element of a tensor, 0 where there is none."""
        if region.tag not in self._last:
            self._last[region.tag] = np.zeros(-(-(region.high - region.low) // region.itemsize), dtype=np.int32)
        last = self._last[region.tag]
        for i in self._new[region.tag]:
            offset = (self._addresses[i] - np.uint64(region.low)) // np.uint64(region.itemsize)
            last[offset[offset < len(last)]] = i + 1
        self._new[region.tag] = []
        return last

    def _judge_load(self, store: int, region: Region, offset: Array, last: Array) -> None:
        (writer, place), reader = self._stores[store], self._report.program
        clock, number = self._clocks.get(reader, NOTHING), self._number.get(writer, len(self._number))
        ordered = reader in self._acquired and number < len(clock) and store < clock[number]
        key = (self._report.place(), place)
        if writer == reader or ordered or frozenset(key) in self.pairs:
            return
        self.pairs.add(frozenset(key))
        inside = offset[offset < len(last)]
        first = int(inside[last[inside] == store + 1][0])
        message = (
            f"{self._report.kernel}: program {reader} reads {region.element(region.low + first * region.itemsize)}, "
            f"which program {writer} writes at {written(place)}: nothing orders them{self._scoped(key)}"
        )
        self._found[key] = Problem(Outcome.RACE, "race", message, written(key[0]))

    def _scoped(self, places: tuple[Any, Any]) -> str:
        return ' (an atomic with scope="cta" is one within its program alone)' if self._own.intersection(places) else ""

    def _judged(self, groups: list[tuple[int, list[int], list[int]]]) -> dict[tuple[Any, Any], Problem]:
        found: dict[tuple[Any, Any], Problem] = {}
        for address, stores, bits in groups:
            last = {self._stores[s][0]: (s, value) for s, value in zip(stores, bits, strict=True)}  # of each program
            free = [(p, *v) for p, v in last.items() if p not in self._synchronizing]
            if len({value for _, _, value in free}) < 2:
                continue
            early = free[0]
            late = next(f for f in free if f[2] != early[2])
            places = self._stores[early[1]][1], self._stores[late[1]][1]
            region = self._memory.owner(address)
            element = region.element(address) if region else f"address {address:#x}"
            message = (
                f"{self._report.kernel}: programs {early[0]} and {late[0]} store different values to {element}: "
                f"the last one wins{self._scoped(places)}"
            )
            found.setdefault(places, Problem(Outcome.RACE, "race", message, written(places[1])))
        return found


def _later(a: Clock, b: Clock) -> Clock:
    """What is known by either of two clocks."""
    if len(a) < len(b):
        a, b = b, a
    if not len(b):
        return a
    joined = a.copy()
    np.maximum(joined[: len(b)], b, out=joined[: len(b)])
    return joined


def _bits(values: Array) -> Array:
    return np.ascontiguousarray(values).view(f"u{values.dtype.itemsize}")
