"""Memory as the checked interpreter sees it: which tensor an address came from, and what may be accessed through it.

A pointer carries the number of its tensor in bits 48 to 62, which no address of user space uses. Arithmetic, integer
casts and `where` leave it there, so that an address is judged by the tensor that its base was taken from and not by
whatever happens to lie at the place it reached.
"""

from __future__ import annotations

import gc
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

Lanes = NDArray[np.bool_]
Addresses = NDArray[np.uint64]

SHIFT = 48
TAGS = (1 << 15) - 1  # bit 63 stays 0, so that a pointer cast to int64 is positive
ADDRESS = np.uint64((1 << SHIFT) - 1)


@dataclass(frozen=True)
class Region:
    """What a pointer may reach: the extent of one tensor's view, from its first to its last address, in bytes."""

    name: str  # the kernel's argument
    tensor: str  # "float32[64, 50]", for messages
    low: int
    high: int  # one past the last byte
    storage: tuple[int, int]
    itemsize: int
    strides: tuple[int, ...] = ()  # elements
    tag: int = 0
    shape: tuple[int, ...] = ()

    @property
    def base(self) -> np.uint64:
        """The tagged address of the first byte."""
        return np.uint64(self.tag << SHIFT | self.low)

    @property
    def gapped(self) -> bool:
        """Whether memory between the view's elements is none of it, as in the columns of a wider matrix."""
        return self.itemsize * math.prod(n for n, s in zip(self.shape, self.strides, strict=True) if s) < self.extent

    @property
    def extent(self) -> int:
        """The bytes from the first element's to the last one's."""
        return self.high - self.low

    def element(self, address: int) -> str:
        """Return "element [3, 0] of X" for a plain address in it: the index along the tensor's dimensions."""
        rest, index = (address - self.low) // self.itemsize, [0] * len(self.strides)
        for axis in sorted(range(len(index)), key=lambda a: -self.strides[a]):
            if self.strides[axis]:
                index[axis], rest = divmod(rest, self.strides[axis])
        return f"element {index} of {self.name}"


NOWHERE = "in no tensor that could be found"  # where the address was made of a number, and of no argument


@dataclass(frozen=True)
class Stray:
    """Lanes of one access that lie outside what they may reach."""

    code: str  # "out-of-bounds" or "out-of-view"
    region: Region | None
    lanes: int
    of: int
    first: int  # the flat index of the first such lane
    before: int  # bytes, of the lane farthest before the start; 0 if none
    past: int  # bytes, of the lane farthest past the end, its own width included
    itemsize: int  # bytes of one lane

    def describe(self) -> str:
        """Return what is wrong in words: how many lanes, which tensor, how far."""
        lanes = f"{self.lanes} of {self.of} lanes" if self.of > 1 else "the address"
        if self.region is None:
            return f"{lanes} {NOWHERE} (first at lane {self.first})"
        way = [
            f"up to {far} bytes ({-(-far // self.itemsize)} elements) {where}"
            for far, where in ((self.before, "before its start"), (self.past, "past its end"))
            if far
        ]
        way = way or ["in the gaps between its elements"]
        inside = ", inside its storage" if self.code == "out-of-view" else ""
        return (
            f"{lanes} outside {self.region.name} ({self.region.tensor}{inside}), {' and '.join(way)}"
            f" (first at lane {self.first})"
        )


class Memory:
    """The regions of a session, and the check of every access against them.

    `report(kind, stray)` is called once for each region that an access leaves; `kind` is load, store or atomic.
    `misaligned(kind, region, size)` is called where wider elements than the tensor's lie across their own width.
    """

    def __init__(self, report: Callable[[str, Stray], None], misaligned: Callable[[str, Region, int], None]) -> None:
        self._report = report
        self._misaligned = misaligned
        self._regions: dict[int, Region] = {}  # by tag
        self._known: dict[tuple[Any, ...], Region] = {}
        self._keys: dict[int, tuple[Any, ...]] = {}  # of `_known`, by tag
        self._next = 0
        self._elements: dict[int, Lanes] = {}  # by tag of a region with gaps: of its extent, which are the view's

    def pointer(self, name: str, tensor: torch.Tensor) -> np.uint64:
        """Return the tagged address of the first element of `tensor`, the kernel's argument `name`."""
        low, high, storage = extent(tensor)
        kind = f"{str(tensor.dtype).removeprefix('torch.')}{list(tensor.shape)}"
        key = (name, kind, low, high, storage, tensor.stride())
        if key not in self._known:
            self._next = self._next % TAGS + 1
            self._known.pop(self._keys.get(self._next, ()), None)
            self._keys[self._next] = key
            self._elements.pop(self._next, None)
            size, shape = tensor.element_size(), tuple(tensor.shape)
            region = Region(name, kind, low, high, storage, size, tensor.stride(), self._next, shape)
            self._known[key] = self._regions[region.tag] = region
        return self._known[key].base

    def region(self, pointers: Addresses) -> Region | None:
        """Return the tensor that the first of `pointers` came from."""
        return self._regions.get(pointers.item(0) >> SHIFT) if pointers.size else None

    def owner(self, address: int) -> Region | None:
        """Return the region that holds a plain address: the latest of several."""
        return next((r for r in reversed(self._regions.values()) if r.low <= address < r.high), None)

    def check(self, kind: str, pointers: Addresses, mask: Lanes, size: int) -> tuple[Addresses, Lanes]:
        """Return plain addresses of `pointers`, and `mask` without the lanes whose `size` bytes lie outside.

        Lanes that are masked off may point anywhere. What is loaded from the gaps of a view does no harm by itself, and
        is let through; what is stored there is lost to another.
        """
        region = self.region(pointers)
        if region is not None and region.extent >= size and (kind == "load" or not region.gapped):
            offset = pointers - region.base  # wraps below the start, and is then too large as well
            inside = offset <= np.uint64(region.extent - size)
            if inside.all() or not (mask & ~inside).any():
                address = offset + np.uint64(region.low)
                if size > region.itemsize and (mask & (address % np.uint64(size) != 0)).any():
                    self._misaligned(kind, region, size)
                return address, mask
        return self._slow(kind, pointers, mask, size)

    def _slow(self, kind: str, pointers: Addresses, mask: Lanes, size: int) -> tuple[Addresses, Lanes]:
        """As `check`, for lanes of several tensors, untagged addresses, and accesses that leave their tensor."""
        address = pointers & ADDRESS
        good = np.zeros(pointers.shape, dtype=bool)
        tags = pointers >> np.uint64(SHIFT)
        for tag in np.unique(tags[mask]):
            lanes = mask & (tags == tag)
            region = self._regions.get(int(tag))
            if region is None:
                good |= self._untagged(kind, address, lanes, size) if tag == 0 else False
                if tag != 0:
                    self._report(kind, _stray(None, address, lanes, lanes, size))
                continue
            within = lanes & (address >= region.low) & (address + np.uint64(size) <= region.high)
            if (lanes & ~within).any():
                self._report(kind, _stray(region, address, lanes & ~within, lanes, size))
            if kind != "load" and region.gapped:
                own = within & self._of_view(region, address, size)
                if (within & ~own).any():
                    self._report(kind, _stray(region, address, within & ~own, lanes, size))
                within = own
            good |= within
        return address, good

    def _of_view(self, region: Region, address: Addresses, size: int) -> Lanes:
        """Return which accesses of `size` bytes begin and end in elements of a view with gaps."""
        if region.tag not in self._elements:
            elements = np.zeros(region.extent // region.itemsize, dtype=bool)
            strides = [s * elements.itemsize for s in region.strides]
            np.lib.stride_tricks.as_strided(elements, region.shape, strides)[...] = True
            self._elements[region.tag] = elements
        elements = self._elements[region.tag]
        ends = (
            (address + np.uint64(far) - np.uint64(region.low)) // np.uint64(region.itemsize) for far in (0, size - 1)
        )
        first, last = (elements[np.minimum(end, np.uint64(len(elements) - 1))] for end in ends)
        return np.asarray(first & last)

    def _untagged(self, kind: str, address: Addresses, lanes: Lanes, size: int) -> Lanes:
        """Return which of `lanes` lie in a live tensor: addresses from a table of `data_ptr()`s have no tag."""
        good = np.zeros(address.shape, dtype=bool)
        left = lanes.copy()
        for search in (self._regions.values, live_tensors):
            for region in search():
                good |= left & (address >= region.low) & (address + np.uint64(size) <= region.high)
            left = lanes & ~good
            if not left.any():
                return good
        self._report(kind, _stray(None, address, left, lanes, size))
        return good


def _stray(region: Region | None, address: Addresses, bad: Lanes, lanes: Lanes, size: int) -> Stray:
    first = int(np.flatnonzero(bad)[0])
    where = address[bad].astype(np.int64)
    if region is None:
        return Stray("out-of-bounds", None, int(bad.sum()), int(lanes.sum()), first, 0, 0, size)
    in_storage = (where >= region.storage[0]) & (where + size <= region.storage[1])
    return Stray(
        "out-of-view" if in_storage.all() else "out-of-bounds", region, int(bad.sum()), int(lanes.sum()), first,
        max(0, region.low - int(where.min())), max(0, int(where.max()) + size - region.high), size,
    )  # fmt: skip


def extent(tensor: torch.Tensor) -> tuple[int, int, tuple[int, int]]:
    """Return the addresses of the view's first byte and one past its last, and the same of its storage."""
    storage = tensor.untyped_storage()
    start = storage.data_ptr()
    low = high = tensor.data_ptr()
    if tensor.numel():
        last = sum((n - 1) * stride for n, stride in zip(tensor.shape, tensor.stride(), strict=True))
        high = low + (last + 1) * tensor.element_size()
    return low, high, (start, start + storage.nbytes())


def live_tensors() -> list[Region]:
    """Return the storages of all tensors that Python holds; slow, and only asked for addresses of no argument."""
    found = []
    for item in gc.get_objects():
        if issubclass(type(item), torch.Tensor) and item.device.type == "cpu" and item.layout is torch.strided:
            storage = item.untyped_storage()
            low = storage.data_ptr()
            found.append(Region("", "", low, low + storage.nbytes(), (low, low + storage.nbytes()), 1))
    return found
