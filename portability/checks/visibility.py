"""What one program stores and then reads back by other lanes, with nothing between that makes the store visible.

The threads of a program see each other's stores to global memory after a barrier (`tl.debug_barrier`), which the
compiler does not insert for them. In the interpreter all lanes go in step, so that such a kernel is right there.
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


class Visibility:
    """An observer of an interpreter's accesses. Barriers, products and atomics make what was stored visible.

    `here` returns the kernel's line that is being executed.
    """

    def __init__(self, session: Any, here: Callable[[], str]) -> None:
        self._session, self._here = session, here
        self._seen: set[str] = set()
        self._program: Any = None
        self._stored: list[tuple[Array, Array]] = []  # sorted addresses, and their lanes
        self._lanes = 0
        for name in ("create_barrier", "create_dot", "create_dot_scaled"):
            setattr(session.builder, name, self._clearing(getattr(session.builder, name)))
        session.access.observers.append(self.observe)

    def observe(self, kind: str, addresses: Array, lanes: Array, size: int, values: Array | None) -> None:
        """Note a store, or hold a load against those of the same program."""
        place = (self._session.report.kernel, len(self._session.launches), self._session.report.program)
        if kind == "atomic" or place != self._program:
            self._program = place
            self._forget()
        if kind == "store":
            self._note(addresses, lanes)
        elif kind == "load" and self._stored and self._reads_others(addresses, lanes):
            self._warn(self._here())

    def _warn(self, line: str) -> None:
        if line not in self._seen:
            self._seen.add(line)
            self._session.warnings.append(Finding(CODE, f"{self._session.report.kernel}: {MESSAGE}", line))

    def _note(self, addresses: Array, lanes: Array) -> None:
        flat = np.flatnonzero(lanes)
        if flat.size and self._lanes + flat.size <= MOST:
            where = addresses.reshape(-1)[flat]
            order = np.argsort(where, kind="stable")
            self._stored.append((where[order], flat[order]))
            self._lanes += flat.size

    def _reads_others(self, addresses: Array, lanes: Array) -> bool:
        here = np.flatnonzero(lanes)
        where = addresses.reshape(-1)[here]
        for stored, by in self._stored:
            at = np.minimum(np.searchsorted(stored, where), stored.size - 1)
            if bool(((stored[at] == where) & (by[at] != here)).any()):
                return True
        return False

    def _clearing(self, function: Any) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            self._forget()
            return function(*args, **kwargs)

        return call

    def _forget(self) -> None:
        self._stored, self._lanes = [], 0
