"""An NPU as a stopwatch, through torch_npu, whose interface is that of `torch.cuda`. Never seen on hardware."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from functools import cache
from typing import Any

FLUSHED = 2**28  # bytes: more than the 192 MB of second-level cache of an A2, as triton-ascend's own do_bench has it
COPIED = 2**30  # bytes of each of two buffers
SIDE = 4096  # of a square matrix product that fills an NPU
REPETITIONS = 10


class Npu:
    """torch_npu's device `index`, timed by events on its current stream."""

    def __init__(self, index: int) -> None:
        import torch

        self._npu, self._index, self.name = npu(), index, f"npu:{index}"
        self._flushed = torch.empty(FLUSHED, dtype=torch.uint8, device=self.name)

    def synchronize(self) -> None:
        """Wait for the NPU; raises torch_npu's error where something failed on it."""
        self._npu.synchronize(self._index)

    def flush(self) -> None:
        """Overwrite more than the caches hold."""
        self._flushed.zero_()

    def mark(self) -> Any:
        """Record an event on the current stream."""
        event = self._npu.Event(enable_timing=True)
        event.record()
        return event

    def between(self, start: Any, end: Any) -> float:
        """Return the milliseconds between two events."""
        return float(start.elapsed_time(end))

    def capture(self, calls: Callable[[], None]) -> Callable[[], None]:
        """Raise `RuntimeError`: times are of plain launches until a graph's were seen on an NPU."""
        raise RuntimeError("graphs are not used on an NPU")

    def copy_rate(self) -> float:
        """Return bytes per second, read and written, of a copy within the device."""
        return _copy_rate(self)

    def matrix_rate(self, unit: str) -> float | None:
        """Return operations per second of torch's matrix product in dtype `unit`; None where it has none."""
        return _matrix_rate(self, unit)

    def typical(self, call: Callable[[], Any]) -> float:
        """Return the median milliseconds of `call`, after as many to warm up."""
        for _ in range(REPETITIONS):
            call()
        marks = [(self.mark(), call(), self.mark()) for _ in range(REPETITIONS)]
        self.synchronize()
        return statistics.median(self.between(start, end) for start, _, end in marks)


def npu() -> Any:
    """Return `torch.npu`, which torch_npu adds to torch when it is imported."""
    import torch
    import torch_npu  # noqa: F401

    return torch.npu  # type: ignore[attr-defined]


@cache
def _copy_rate(device: Npu) -> float:
    import torch

    source = torch.zeros(COPIED, dtype=torch.uint8, device=device.name)
    target = torch.empty_like(source)
    return 2 * COPIED / device.typical(lambda: target.copy_(source)) * 1e3


@cache
def _matrix_rate(device: Npu, unit: str) -> float | None:
    import torch

    dtype = getattr(torch, unit, None)
    if dtype is None or not dtype.is_floating_point:
        return None
    try:
        a, b = (torch.randn(SIDE, SIDE, device=device.name).to(dtype) for _ in range(2))
        return 2 * SIDE**3 / device.typical(lambda: torch.matmul(a, b)) * 1e3
    except RuntimeError:  # torch_npu has no product of this dtype
        device.synchronize()  # a fault of the device is raised again here
        return None
