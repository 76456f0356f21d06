"""Plain loads that come early: what other programs update atomically they need not see, unless something orders them.

Programs run one after another here, so that a load sees every atomic before it. On a device all may load before any of
them updates. In the execution that asks for it, a program that has acquired nothing loads what the launch began with,
wherever others have updated atomically: the worst that the memory model allows. A result that differs is a race.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from numpy.typing import NDArray

from portability.interpret.memory import Memory, Region
from portability.interpret.report import Report

Array = NDArray[Any]
Place = tuple[str, int]
Program = tuple[int, int, int]


class Early:
    """What a launch began with, of the tensors that its programs update atomically.

    `pairs` are the lines of a load and of updates that it did not see, where that gave another value.
    """

    def __init__(self, report: Report, memory: Memory) -> None:
        self._report, self._memory = report, memory
        self.on = False
        self.pairs: set[frozenset[Place]] = set()
        self.clear()

    def clear(self) -> None:
        """A launch begins."""
        self._begun: dict[int, Array] = {}  # by tag: the tensor's bytes
        self._updated: dict[int, NDArray[np.bool_]] = {}  # by tag: of each element
        self._by: dict[int, set[Program]] = {}
        self._places: dict[int, set[Place]] = {}

    def updating(self, pointers: Array, addresses: Array, lanes: Array) -> None:
        """Note an atomic of the running program, before it is done."""
        region = self._memory.region(pointers) if self.on else None
        if region is None:
            return
        if region.tag not in self._begun:
            size = region.high - region.low
            self._begun[region.tag] = np.frombuffer(ctypes.string_at(region.low, size), dtype=np.uint8)
            self._updated[region.tag] = np.zeros(-(-size // region.itemsize), dtype=np.bool_)
            self._by[region.tag], self._places[region.tag] = set(), set()
        self._updated[region.tag][_offsets(addresses[lanes], region)] = True
        self._by[region.tag].add(self._report.program)
        self._places[region.tag].add(self._report.place())

    def seen(self, pointers: Array, addresses: Array, lanes: Array, values: Array) -> Array:
        """Return what a plain load gives whose program has acquired nothing: a program sees its own updates."""
        region = self._memory.region(pointers) if self.on else None
        if region is None or region.tag not in self._begun or self._report.program in self._by[region.tag]:
            return values
        within = lanes.copy()
        within[lanes] = self._updated[region.tag][_offsets(addresses[lanes], region)]
        if not within.any():
            return values
        bytes_of = (addresses[within] - np.uint64(region.low))[:, None] + np.arange(values.itemsize, dtype=np.uint64)
        old = values.copy()
        old[within] = self._begun[region.tag][bytes_of].view(values.dtype)[:, 0]
        if old.tobytes() != values.tobytes():
            place = self._report.place()
            self.pairs |= {frozenset((place, other)) for other in self._places[region.tag]}
        return old


def _offsets(addresses: Array, region: Region) -> Array:
    return (addresses - np.uint64(region.low)) // np.uint64(region.itemsize)
