"""Two programs that store different values to one element: whoever is last wins, and nothing says who that is.

Running the programs in another order shows most races, and not this one where both add to what they read: the sum is
the same in every order in which programs run one after another, and is lost on a device, where they run at once.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from portability.backend import Problem
from portability.interpret.memory import Memory
from portability.interpret.report import Report, written
from portability.model import Outcome

Array = NDArray[Any]

MOST = 1 << 24  # lanes kept of a launch: 400 MB; what is stored after them is not looked at


class StoreLog:
    """What the programs of a launch stored. Programs that use atomics may be ordering themselves, and are left out."""

    def __init__(self, report: Report, memory: Memory) -> None:
        self._report = report
        self._memory = memory
        self.clear()

    def clear(self) -> None:
        """Forget everything: a launch begins."""
        self._addresses: list[Array] = []
        self._values: list[Array] = []
        self._stores: list[tuple[tuple[int, int, int], tuple[str, int]]] = []  # program and place of each
        self._synchronizing: set[tuple[int, int, int]] = set()
        self._room = MOST

    def stored(self, addresses: Array, lanes: Array, values: Array) -> None:
        """Note a store of the running program."""
        program = self._report.program
        if program in self._synchronizing or self._room < addresses.size:
            return
        if lanes.all():
            where, bits = addresses.reshape(-1), _bits(values).reshape(-1)
        else:
            where, bits = addresses[lanes], _bits(np.broadcast_to(values, lanes.shape)[lanes])
        self._room -= where.size
        self._addresses.append(where)
        self._values.append(bits)
        self._stores.append((program, self._report.place()))

    def synchronized(self) -> None:
        """Note that the running program used an atomic."""
        self._synchronizing.add(self._report.program)

    def conclude(self) -> list[Problem]:
        """Return the first race of each pair of lines in what was stored since `clear`."""
        if len({program for program, _ in self._stores}) < 2:
            return []
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
            return []
        bits = np.concatenate([v.astype(np.uint64) for v in self._values])[order]
        ends = np.append(starts[1:], len(address))
        groups = [
            (int(address[a]), store[a:b].tolist(), bits[a:b].tolist())
            for a, b in zip(starts[several], ends[several], strict=True)
        ]
        return self._judged(groups)

    def _judged(self, groups: list[tuple[int, list[int], list[int]]]) -> list[Problem]:
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
                "the last one wins"
            )
            found.setdefault(places, Problem(Outcome.RACE, "race", message, written(places[1])))
        return list(found.values())


def _bits(values: Array) -> Array:
    return np.ascontiguousarray(values).view(f"u{values.dtype.itemsize}")
