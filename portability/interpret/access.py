"""Loads, stores and atomics: what is outside is not touched, what is undefined is poisoned."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from portability.interpret.early import Early
from portability.interpret.internals import TensorHandle, native
from portability.interpret.memory import Memory, Region, Stray
from portability.interpret.races import StoreLog, Sync
from portability.interpret.report import Report
from portability.interpret.undefined import Undefined, mark
from portability.interpret.values import FLOAT8, NARROW, narrow, numpy_dtype, widen
from portability.model import Outcome

Array = NDArray[Any]
Handle = Any

# Two fillings whose sum, product, minimum and maximum with anything differ from each other in most lanes. They are
# moderate, so that their squares do not overflow to the same infinity, and neither cancels within itself. Integers may
# be taken for places: some are far outside of any, and some are such as exist.
FLOAT_POISON = ((1016.0, -680.0), (-904.0, 1208.0, np.nan, np.nan))
FLOAT8_POISON = ((224.0, -112.0), (-160.0, 192.0, np.nan, np.nan))
INTEGER_POISON = {  # by width in bytes; unsigned types take the same bits
    1: ((101, -89, 1), (-113, 97, 2)),
    2: ((20011, -18013, 1), (-21001, 17011, 2)),
    4: ((1000003, -999983, 1), (-1500007, 2000003, 2)),
    8: ((1000003, -999983, 1), (-1500007, 2000003, 2)),
}
NATIVE = frozenset({"int32", "int64", "uint32", "uint64", "fp32", "fp64"})  # what Triton's own atomics are right for


@cache
def poison(name: str, kind: np.dtype[Any], shape: tuple[int, ...], which: int) -> Array:
    """Return the filling number `which` (0 or 1) for undefined lanes of the Triton type `name`."""
    if name in FLOAT8:
        scale = 1 / 128 if name == "fp8e4b15" else 1.0
        pattern = narrow(np.array(FLOAT8_POISON[which], dtype=np.float32) * scale, name)
    elif name == "bf16":
        pattern = narrow(np.array(FLOAT_POISON[which], dtype=np.float32), name)
    elif kind.kind == "f":
        pattern = np.array(FLOAT_POISON[which], dtype=kind)
    elif kind == np.bool_:
        pattern = np.array([not which, which], dtype=kind)
    else:
        pattern = np.array(INTEGER_POISON[kind.itemsize][which], dtype=np.int64).astype(kind)
    filling = np.resize(pattern, shape)
    filling.flags.writeable = False
    return filling


@cache
def _everywhere(shape: tuple[int, ...]) -> NDArray[np.bool_]:
    lanes = np.ones(shape, dtype=bool)
    lanes.flags.writeable = False
    return lanes


@cache
def _zeros(shape: tuple[int, ...], kind: np.dtype[Any]) -> Array:
    lanes = np.zeros(shape, dtype=kind)
    lanes.flags.writeable = False
    return lanes


class Access:
    """What a program's loads, stores and atomics do.

    poison       0 or 1: what undefined lanes hold
    last_wins    of the lanes of one store that write one element; False makes the first win: no target promises either
    observers    called as `observer(kind, addresses, lanes, size, values)` for every access, with plain addresses
    watched      above 0 inside a `while` loop: stores then count `changes` of memory
    """

    def __init__(self, report: Report) -> None:
        self.report = report
        self.memory = Memory(self._stray, self._misaligned)
        self.log = StoreLog(report, self.memory)
        self.early = Early(report, self.memory)
        self.poison = 0
        self.last_wins = True
        self.observers: list[Callable[[str, Array, Array, int, Array | None], None]] = []
        self.watched = 0
        self.changes = 0
        self.leaks: list[Undefined] = []  # undefined lanes that were stored

    def _stray(self, kind: str, stray: Stray) -> None:
        self.report.problem(Outcome.OUT_OF_BOUNDS, stray.code, f"{kind} of {stray.describe()}")

    def _misaligned(self, kind: str, region: Region, size: int) -> None:
        message = (
            f"{kind} of {size} bytes from {region.name} ({region.tensor}) at addresses that are no multiples of {size}"
        )
        self.report.warn("misaligned", message)

    def load(
        self, pointers: Handle, mask: Array | None, other: Handle | None, sync: Sync = Sync.NONE, atomic: bool = False
    ) -> Handle:
        """Return the elements at `pointers`. Lanes off hold `other` or, without it, poison; lanes outside poison."""
        dtype = pointers.get_element_ty()
        kind = numpy_dtype(dtype)
        wanted = _everywhere(pointers.data.shape) if mask is None else mask
        addresses, good = self._check("load", pointers, wanted, kind.itemsize)
        undefined = None
        if other is None or good is not wanted:
            off = ~good if other is None else wanted & ~good
            undefined = off if off.any() else None
        if undefined is None:
            filling = _zeros(good.shape, kind) if other is None else other.data
        else:
            filling = poison(dtype.name, kind, good.shape, self.poison)
            if other is not None:
                filling = np.where(undefined, filling, other.data)
        if sync in (Sync.NONE, Sync.OWN):
            self.log.loaded(pointers.data, addresses, good)
        else:
            self.log.synchronized(sync, pointers.data, addresses)
        if self.observers:
            self._observe("atomic" if atomic else "load", addresses, good, kind.itemsize, None)
        values = native.load(addresses, good, filling, kind)
        if self.early.on and sync is Sync.NONE and not self.log.has_acquired:
            values = self.early.seen(pointers.data, addresses, good, values)
        handle = TensorHandle(values, dtype)
        if undefined is not None:
            mark(handle, Undefined(undefined, self.report.place()))
        return handle

    def store(
        self, pointers: Handle, value: Handle, mask: Array | None, sync: Sync = Sync.NONE, atomic: bool = False
    ) -> None:
        """Write the lanes that are on and inside."""
        wanted = _everywhere(pointers.data.shape) if mask is None else mask
        data = value.data
        addresses, good = self._check("store", pointers, wanted, data.dtype.itemsize)
        if value.attr:
            self._leak(value, good)
        if self.observers:
            self._observe("atomic" if atomic else "store", addresses, good, data.dtype.itemsize, data)
        if atomic and sync is not Sync.OWN:
            self.log.synchronized(sync, pointers.data, addresses)
            self.early.updating(pointers.data, addresses, good)
        else:
            self.log.stored(pointers.data, addresses, good, data)
        if self.watched:
            before = native.load(addresses, good, data, data.dtype)
            self.changes += before.tobytes() != data.tobytes()
        if not self.last_wins:
            addresses, data, good = (np.ascontiguousarray(a.reshape(-1)[::-1]) for a in (addresses, data, good))
        native.store(addresses, data, good)

    def atomic(self, operation: str, pointers: Handle, value: Handle, mask: Array, sync: Sync) -> Handle:
        """Read, modify and write the lanes that are on and inside, one after another; return what was there."""
        dtype = value.dtype.scalar
        data = np.ascontiguousarray(value.data)
        mask = np.broadcast_to(mask, data.shape)
        addresses, good = self._check("atomic", pointers, mask, data.dtype.itemsize)
        self._updating(pointers, addresses, good, data, sync)
        if self.observers:
            self._observe("atomic", addresses, good, data.dtype.itemsize, data)
        if value.attr:
            self._leak(value, good)
        filling = poison(dtype.name, data.dtype, data.shape, self.poison)
        before = native.load(addresses, good, filling, data.dtype) if self.watched else None
        if dtype.name in NATIVE and hasattr(native.RMW_OP, operation) and (operation != "XCHG" or dtype.is_int()):
            order = native.MEM_SEMANTIC.ACQUIRE_RELEASE
            old = native.atomic_rmw(getattr(native.RMW_OP, operation), addresses, data, good, order)
        else:
            old = _in_rounds(_operation(operation, dtype.name), addresses, data, good)
        if before is not None:
            self.changes += native.load(addresses, good, filling, data.dtype).tobytes() != before.tobytes()
        return TensorHandle(np.where(good, old, filling), dtype)

    def compare_and_swap(self, pointers: Handle, expected: Handle, value: Handle, sync: Sync) -> Handle:
        """Write `value` where memory holds `expected`, lane after lane; return what was there."""
        data, wanted = np.ascontiguousarray(value.data), expected.data
        addresses, good = self._check("atomic", pointers, _everywhere(data.shape), data.dtype.itemsize)
        self._updating(pointers, addresses, good, data, sync)
        if self.observers:
            self._observe("atomic", addresses, good, data.dtype.itemsize, data)
        flat = np.flatnonzero(good)
        old = poison(value.dtype.scalar.name, data.dtype, data.shape, self.poison).copy()
        here, given = addresses.reshape(-1)[flat], np.broadcast_to(wanted, data.shape).reshape(-1)[flat]
        news = data.reshape(-1)[flat]
        found = native.atomic_cas(here, given, news, native.MEM_SEMANTIC.ACQUIRE_RELEASE)
        self.changes += bool(((found == given) & (news != given)).any())
        old.reshape(-1)[flat] = found
        return TensorHandle(old, value.dtype.scalar)

    def _updating(self, pointers: Handle, addresses: Array, lanes: Array, data: Array, sync: Sync) -> None:
        """Tell the logs of an atomic that is about to be done."""
        if sync is Sync.OWN:
            self.log.updated(pointers.data, addresses, lanes, data)
        else:
            self.log.synchronized(sync, pointers.data, addresses)
            self.early.updating(pointers.data, addresses, lanes)

    def _check(self, kind: str, pointers: Handle, mask: Array, size: int) -> tuple[Array, Array]:
        return self.memory.check(kind, pointers.data, mask, size)

    def _observe(self, kind: str, addresses: Array, lanes: Array, size: int, values: Array | None) -> None:
        for observer in self.observers:
            observer(kind, addresses, lanes, size, values)

    def _leak(self, value: Handle, lanes: Array) -> None:
        undefined = value.attr.get("undefined")
        if undefined is not None and (undefined.lanes & lanes).any():
            self.leaks.append(Undefined(undefined.lanes & lanes, undefined.place, self.report.place()))


def _operation(name: str, dtype: str) -> Callable[[Array, Array], Array]:
    """Return new = f(old, value) on what a type is held in, for the atomics that Triton's interpreter lacks."""
    plain: dict[str, Callable[[Array, Array], Array]] = {
        "ADD": np.add, "FADD": np.add, "AND": np.bitwise_and, "OR": np.bitwise_or, "XOR": np.bitwise_xor,
        "MAX": np.maximum, "UMAX": np.maximum, "MIN": np.minimum, "UMIN": np.minimum,
        "XCHG": lambda _, value: value,
        "INC": lambda old, value: np.where(old >= value, 0, old + 1).astype(old.dtype),
        "DEC": lambda old, value: np.where((old == 0) | (old > value), value, old - 1).astype(old.dtype),
    }  # fmt: skip
    function = plain[name]
    if dtype not in NARROW or name in ("XCHG", "AND", "OR", "XOR"):
        return function
    return lambda old, value: narrow(function(widen(old, dtype), widen(value, dtype)), dtype)


def _in_rounds(function: Callable[[Array, Array], Array], addresses: Array, values: Array, lanes: Array) -> Array:
    """Apply `function` to memory so that lanes of one address go one after another; return the old values."""
    flat = np.flatnonzero(lanes)
    where, given = addresses.reshape(-1)[flat], values.reshape(-1)[flat]
    order = np.argsort(where, kind="stable")
    ordered = where[order]
    starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1])) if len(flat) else np.zeros(0, dtype=np.int64)
    rank = np.empty(len(flat), dtype=np.int64)
    rank[order] = np.arange(len(flat)) - np.repeat(starts, np.diff(np.append(starts, len(flat))))
    old = values.copy()
    for turn in range(int(rank.max()) + 1 if len(flat) else 0):
        now = np.flatnonzero(rank == turn)
        every = _everywhere(now.shape)
        before = native.load(where[now], every, given[now], values.dtype)
        native.store(where[now], np.ascontiguousarray(function(before, given[now])), every)
        old.reshape(-1)[flat[now]] = before
    return old
