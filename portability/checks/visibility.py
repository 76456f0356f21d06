"""What one program stores and other lanes of it load, or the other way round, with nothing between that orders them.

The threads of a program see each other's stores to global memory after a barrier (`tl.debug_barrier`), which the
compiler does not insert for them; nor does one thread wait with a store for what others load before it. In the
interpreter all lanes go in step, so that such a kernel is right there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from portability.model import Finding

Array = NDArray[Any]

MOST = 1 << 20  # lanes of one program that are kept between two barriers
CODE = "missing-barrier"
MESSAGE = (
    "reads what other lanes of this program stored, with no barrier between: on a device it may see what was there "
    "before; tl.debug_barrier() orders them"
)
OVERWRITES = (
    "overwrites what other lanes of this program load before, with no barrier between: on a device they may see what "
    "is stored here; tl.debug_barrier() orders them"
)
# Operations in which threads wait for each other once they have loaded what they combine or move.
MEETINGS = (
    "create_trans", "create_reshape", "create_join", "create_split", "create_cat", "create_gather", "create_histogram",
)  # fmt: skip
Stored = list[tuple[Array, Array]]  # sorted addresses, and their lanes


class Visibility:
    """An observer of an interpreter's accesses. Barriers, products and atomics make what was stored visible.

    `here` returns the kernel's line that is being executed.
    """

    def __init__(self, session: Any, here: Callable[[], str]) -> None:
        self._session, self._here = session, here
        self._seen: set[str] = set()
        self._program: Any = None
        self._stored: Stored = []
        self._loaded: Stored = []
        self._lanes = 0
        for name in ("create_barrier", "create_dot", "create_dot_scaled"):
            setattr(session.builder, name, self._clearing(getattr(session.builder, name), self._forget))
        reducer = session.language.reducer
        met = [(session.builder, n) for n in MEETINGS if hasattr(session.builder, n)]
        for owner, name in (*met, (reducer, "reduce"), (reducer, "scan")):
            setattr(owner, name, self._clearing(getattr(owner, name), self._loaded.clear))
        session.access.observers.append(self.observe)

    def observe(self, kind: str, addresses: Array, lanes: Array, size: int, values: Array | None) -> None:
        """Note a store, or hold a load against those of the same program."""
        place = (self._session.report.kernel, len(self._session.launches), self._session.report.program)
        if kind == "atomic" or place != self._program:
            self._program = place
            self._forget()
        if kind == "store":
            if self._loaded and self._by_others(self._loaded, addresses, lanes):
                self._warn(self._here(), OVERWRITES)
            self._note(self._stored, addresses, lanes)
        elif kind == "load":
            if self._stored and self._by_others(self._stored, addresses, lanes):
                self._warn(self._here(), MESSAGE)
            if lanes.size > 1:  # a scalar is loaded by every thread, and so by the one that stores
                self._note(self._loaded, addresses, lanes)

    def _warn(self, line: str, message: str) -> None:
        if line not in self._seen:
            self._seen.add(line)
            self._session.warnings.append(Finding(CODE, f"{self._session.report.kernel}: {message}", line))

    def _note(self, accesses: Stored, addresses: Array, lanes: Array) -> None:
        flat = np.flatnonzero(lanes)
        if flat.size and self._lanes + flat.size <= MOST:
            where = addresses.reshape(-1)[flat]
            order = np.argsort(where, kind="stable")
            accesses.append((where[order], flat[order]))
            self._lanes += flat.size

    def _by_others(self, accesses: Stored, addresses: Array, lanes: Array) -> bool:
        """Whether a lane here has an address that another lane has there."""
        here = np.flatnonzero(lanes)
        where = addresses.reshape(-1)[here]
        for stored, by in accesses:
            at = np.minimum(np.searchsorted(stored, where), stored.size - 1)
            if bool(((stored[at] == where) & (by[at] != here)).any()):
                return True
        return False

    def _clearing(self, function: Any, forget: Callable[[], None]) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            forget()
            return function(*args, **kwargs)

        return call

    def _forget(self) -> None:
        self._stored.clear()
        self._loaded.clear()
        self._lanes = 0
