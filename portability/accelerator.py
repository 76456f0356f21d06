"""torch's CUDA and ROCm devices as a stopwatch, with the ceilings that they themselves reach."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from functools import cache
from typing import Any

import torch

FLUSHED = (
    2**28
)  # bytes at the least: several times the second-level cache of today's cards, as Triton's do_bench has it
COPIED = 2**31  # bytes at the most, of each of the two buffers
REPETITIONS = 10
SIDES = (4096, 8192)  # of square products: the smaller may not fill the device, the larger may throttle it


class Accelerator:
    """Device `index`, timed by events on its current stream. `cache_bytes` where a cache is larger than is reported."""

    def __init__(self, index: int, cache_bytes: int = 0) -> None:
        self.index = index
        cached = max(torch.cuda.get_device_properties(index).L2_cache_size, cache_bytes)
        self._flushed = torch.empty(max(FLUSHED, 2 * cached), dtype=torch.uint8, device=f"cuda:{index}")

    def synchronize(self) -> None:
        """Wait for the device; raises torch's error where something failed on it."""
        torch.cuda.synchronize(self.index)

    def flush(self) -> None:
        """Overwrite more than the caches hold."""
        self._flushed.zero_()

    def mark(self) -> Any:
        """Record an event on the current stream."""
        return _event()

    def between(self, start: Any, end: Any) -> float:
        """Return the milliseconds between two events."""
        return float(start.elapsed_time(end))

    def capture(self, calls: Callable[[], None]) -> Callable[[], None]:
        """Return the replay of a CUDA graph of `calls`.

        What waits for the device is refused before: a capture that it breaks off leaves torch's random numbers in
        the state of a capture, and every later `torch.randn` of the process fails.
        """
        mode = torch.cuda.get_sync_debug_mode()
        torch.cuda.set_sync_debug_mode("error")
        try:
            calls()
        finally:
            torch.cuda.set_sync_debug_mode(mode)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            calls()
        replay: Callable[[], None] = graph.replay
        return replay

    def copy_rate(self) -> float:
        """Return bytes per second, read and written, of a device-to-device copy; measured once a process."""
        return _copy_rate(self.index)

    def matrix_rate(self, unit: str) -> float | None:
        """Return operations per second of torch's matrix product in `unit`, or None; measured once a process.

        `unit` is a torch dtype's name, or "tf32". "float32" is without TF32.
        """
        return _matrix_rate(self.index, unit)


@cache
def _copy_rate(index: int) -> float:
    with torch.cuda.device(index):
        free, _ = torch.cuda.mem_get_info(index)
        size = min(COPIED, free // 4)
        rate = 2 * size / _typical(_copy(size)) * 1e3
        torch.cuda.empty_cache()
        return rate


def _copy(size: int) -> Callable[[], Any]:
    source = torch.zeros(size, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    return lambda: target.copy_(source)


@cache
def _matrix_rate(index: int, unit: str) -> float | None:
    precision = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high" if unit == "tf32" else "highest")
    try:
        with torch.cuda.device(index):
            return max(2 * n**3 / _typical(_product(n, unit)) * 1e3 for n in SIDES)
    except (RuntimeError, AttributeError):  # torch has not this product on this device, or not this dtype
        torch.cuda.synchronize(index)  # a fault of the device is raised again here
        return None
    finally:
        torch.set_float32_matmul_precision(precision)
        torch.cuda.empty_cache()


def _product(n: int, unit: str) -> Callable[[], Any]:
    """Return an n × n × n product of random values, the operands laid out as the vendors' libraries want them."""
    dtype = torch.float32 if unit == "tf32" else getattr(torch, unit)
    if dtype is torch.int8:
        a, b = (torch.randint(-8, 8, (n, n), dtype=dtype, device="cuda") for _ in range(2))
        return lambda: torch._int_mm(a, b.t())
    a, b = (torch.randn(n, n, device="cuda").to(dtype) for _ in range(2))
    if dtype.itemsize > 1:
        return lambda: torch.matmul(a, b.t())
    if dtype is torch.float8_e5m2:
        b = b.to(torch.float8_e4m3fn)  # cuBLAS multiplies no two e5m2; the rate is that of any two float8
    one = torch.ones((), device="cuda")
    return lambda: torch._scaled_mm(a, b.t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16)


def _typical(call: Callable[[], Any]) -> float:
    """Return the median milliseconds of a call, after as many to warm up."""
    for _ in range(REPETITIONS):
        call()
    marks = [(_event(), call(), _event()) for _ in range(REPETITIONS)]
    torch.cuda.synchronize()
    return statistics.median(float(start.elapsed_time(end)) for start, _, end in marks)


def _event() -> Any:
    event = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
    event.record()
    return event
