"""A distinct launch while it is counted, and what is recorded of it in the end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from portability.record.model import Call, Grid

Size = tuple[int, ...]


class Entry:
    """One distinct launch while it is counted: `grid` and `test` are those of the last ones, `times` how many."""

    __slots__ = ("call", "compiled", "counts", "error", "grid", "smallest", "test", "times")

    def __init__(self, call: Call, compiled: Any) -> None:
        self.call, self.compiled = call, compiled  # the kernel is kept, so that its id stays its own
        self.counts: dict[tuple[Size, str], int] = {}
        self.grid: Any = None
        self.test, self.times, self.error = "", 0, ""
        self.smallest = 2**63

    def change(self, grid: Any, test: str) -> None:
        """Count the last ones, and go on with a launch of another grid or test."""
        self.close()
        self.grid, self.test, self.times = grid if isinstance(grid, tuple) else list(grid), test, 1

    def close(self) -> None:
        """Count the last ones."""
        if self.times:
            key = tuple(int(n) for n in self.grid), self.test
            self.counts[key] = self.counts.get(key, 0) + self.times
            self.times = 0


class Generated(Entry):
    """A launch of a kernel that Inductor generated: a call and a grid for each configuration; `grid` is its sizes."""

    __slots__ = ("calls",)

    def __init__(self, kernel: Any, calls: Sequence[tuple[Call, Size]]) -> None:
        super().__init__(calls[0][0], kernel)
        self.calls = calls

    def entries(self) -> Iterator[Entry]:
        """Yield what would have counted each configuration."""
        self.close()
        for call, grid in self.calls:
            entry = Entry(call, self.compiled)
            for (_, test), times in self.counts.items():
                entry.counts[grid, test] = entry.counts.get((grid, test), 0) + times
            yield entry


def call_of(entry: Entry, tests: dict[str, int]) -> Call:
    """Return the call with its grids; `tests` gives each test's name its place."""
    times: dict[Size, int] = {}
    by: dict[Size, dict[int, None]] = {}
    entry.close()
    for (size, test), n in entry.counts.items():
        times[size] = times.get(size, 0) + n
        if test:
            by.setdefault(size, {})[tests.setdefault(test, len(tests))] = None
    grids = tuple(Grid(size, n, tuple(by.get(size, ()))) for size, n in times.items())
    return replace(entry.call, grids=grids, error=entry.error or entry.call.error)
