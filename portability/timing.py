"""Times: quantiles of single launches, graph replay for short ones, and fractions of the device's own ceilings.

What is timed is one call at a time, the caches flushed before it, outputs preallocated, on a device that no other
process of this machine uses meanwhile. This module knows a device only by `Stopwatch`; `portability.accelerator` has
torch's.
"""

from __future__ import annotations

import contextlib
import os
import re
import statistics
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

from portability.kernel import Cost
from portability.model import Timing

UNSTABLE = 0.10  # (p80 - p20) / median above which a time is no figure
SHORT_MS = 0.05  # below, the host's part of a launch shows in its time, and it is replayed from a graph too
HOST_MS = 1.0  # above, no host's part of a call makes its time vary
ESTIMATES = 5  # calls that tell how many fit into a period
LEAST = 10  # repetitions, or the quantiles say nothing
CALLS = 32  # in one graph: a flush lasts some ten times a short call, and its jitter is divided by this
LOCKS = Path("/tmp")  # not `tempfile.gettempdir()`: runners have folders of their own, and users their own TMPDIR


class Stopwatch(Protocol):
    """What timing asks of a device. Everything is queued in order; only `synchronize` and `between` wait."""

    def synchronize(self) -> None:
        """Return when everything queued has ended; raises what the device reports."""

    def flush(self) -> None:
        """Queue a write over more memory than the caches hold."""

    def mark(self) -> Any:
        """Queue a point in time."""

    def between(self, start: Any, end: Any) -> float:
        """Return the milliseconds between two marks that have passed."""

    def capture(self, calls: Callable[[], None]) -> Callable[[], None]:
        """Return what replays everything that `calls` queues. Raises `RuntimeError` if it cannot be captured."""

    def copy_rate(self) -> float:
        """Return bytes per second, read and written, of a large copy within the device."""

    def matrix_rate(self, unit: str) -> float | None:
        """Return operations per second of torch's large matrix product in dtype `unit`; None where it has none."""


# --------------------------------------------------------------------------------------------------- samples


def bench(
    device: Stopwatch, call: Callable[[], Any], warmup_ms: float, rep_ms: float, graph: bool = False
) -> list[float]:
    """Return milliseconds of single calls; of a call within a replayed graph if `graph`.

    `warmup_ms` and `rep_ms` are spent with the flushes counted in, as in `triton.testing.do_bench`. There are at least
    LEAST repetitions.
    """
    call()
    device.synchronize()  # compiled, loaded, and any fault reported here
    return _replays(device, call, warmup_ms, rep_ms) if graph else _launches(device, call, warmup_ms, rep_ms)


def _launches(device: Stopwatch, call: Callable[[], Any], warmup_ms: float, rep_ms: float) -> list[float]:
    """Time calls as a program makes them. The flush runs while the host prepares the launch, and so hides it."""

    def flushed() -> tuple[Any, Any]:
        device.flush()
        start = device.mark()
        call()
        return start, device.mark()

    each = _warm(device, flushed, warmup_ms)
    marks = [flushed() for _ in range(max(LEAST, int(rep_ms / each)))]
    device.synchronize()
    return [device.between(start, end) for start, end in marks]


def _replays(device: Stopwatch, call: Callable[[], Any], warmup_ms: float, rep_ms: float) -> list[float]:
    """Time calls without the host: graphs of CALLS flushes with a call after each, less graphs of the flushes alone.

    Calls in a graph would find each other's data in the caches, and marks inside a graph are not had on every version
    and vendor: hence the flushes in both graphs and the difference. It holds one gap between two nodes, about a
    microsecond, as a chain of real launches does. Both are replayed in turn, so that a drifting clock meets both.
    """

    def flushed() -> None:
        device.flush()
        call()

    both = device.capture(lambda: _repeat(flushed, CALLS))
    flushes = device.capture(lambda: _repeat(device.flush, CALLS))

    def turn() -> tuple[Any, Any, Any]:
        start = device.mark()
        both()
        middle = device.mark()
        flushes()
        return start, middle, device.mark()

    each = _warm(device, turn, warmup_ms)
    marks = [turn() for _ in range(max(LEAST, int(rep_ms / each)))]
    device.synchronize()
    alone = statistics.median(device.between(middle, end) for _, middle, end in marks)
    return [(device.between(start, middle) - alone) / CALLS for start, middle, _ in marks]


def _warm(device: Stopwatch, turn: Callable[[], Any], warmup_ms: float) -> float:
    """Run `turn` for `warmup_ms` and return the milliseconds that one takes."""
    start = device.mark()
    _repeat(turn, ESTIMATES)
    end = device.mark()
    device.synchronize()
    each = max(device.between(start, end) / ESTIMATES, 1e-3)
    _repeat(turn, int(warmup_ms / each))
    return each


def _repeat(call: Callable[[], Any], times: int) -> None:
    for _ in range(times):
        call()


def quantiles(samples: Sequence[float]) -> tuple[float, float, float]:
    """Return the 20 % quantile, the median and the 80 % quantile, interpolated linearly, of two samples or more."""
    p20, _, _, p80 = statistics.quantiles(samples, n=5, method="inclusive")
    return p20, statistics.median(samples), p80


# --------------------------------------------------------------------------------------------------- a timing


def measure(
    device: Stopwatch,
    call: Callable[[], Any],
    torch_call: Callable[[], Any] | None = None,
    cost: Cost | None = None,
    warmup_ms: float = 25.0,
    rep_ms: float = 100.0,
    unstable: float = UNSTABLE,
) -> Timing:
    """Return the time of `call`, of torch's own operation in the same way, and the fraction of the ceiling reached.

    A call below SHORT_MS is timed by graph replay, and its plain launch beside it. So is one below HOST_MS whose
    launches spread by more than `unstable`, if its replays take less than the fast ones of them: what varied was the
    host, which such a call waits for. `cost` gives GB/s (10⁹ bytes) and TFLOP/s. The ceiling that bounds the case is
    the one that takes longer for its bytes or its operations; rates of operations outside matrix units are not bounded
    here. Take the device's lock around this (`device_lock`).
    """
    launches = bench(device, call, warmup_ms, rep_ms)
    p20, median, p80 = quantiles(launches)
    replays = None
    if median < SHORT_MS or (median < HOST_MS and p80 - p20 > unstable * median):
        replays = _replayed(device, call, warmup_ms, rep_ms)
    if replays and median >= SHORT_MS and statistics.median(replays) >= p20:
        replays = None  # the device itself varies, and a replay's mean would hide it
    p20, median, p80 = quantiles(replays or launches)
    spread = (p80 - p20) / median if median else 0.0  # shorter than the clock tells apart
    ideal, name = _ceiling(device, cost) if cost else (None, "")
    return Timing(
        median=median,
        p20=p20,
        p80=p80,
        method="graph" if replays else "launch",
        repetitions=len(replays or launches),
        warmup_ms=warmup_ms,
        rep_ms=rep_ms,
        stable=spread <= unstable,
        spread=spread,
        launch_median=statistics.median(launches) if replays else None,
        torch_median=_torch_median(device, torch_call, warmup_ms, rep_ms, graph=bool(replays)),
        gbps=cost.bytes / median / 1e6 if cost and median else None,
        tflops=cost.flops / median / 1e9 if cost and cost.flops and median else None,
        ceiling=ideal / median if ideal and median else None,
        ceiling_of=name,
    )


def _replayed(device: Stopwatch, call: Callable[[], Any], warmup_ms: float, rep_ms: float) -> list[float] | None:
    try:
        samples = bench(device, call, warmup_ms, rep_ms, graph=True)
    except RuntimeError:  # a call that waits for the device cannot be captured: its launch is its time
        device.synchronize()  # a fault is another matter, and is raised again here
        return None
    return samples if min(samples) > 0 else None  # shorter than the jitter of a flush


def _torch_median(
    device: Stopwatch, torch_call: Callable[[], Any] | None, warmup_ms: float, rep_ms: float, graph: bool
) -> float | None:
    if torch_call is None:
        return None
    try:
        samples = bench(device, torch_call, warmup_ms, rep_ms)
    except RuntimeError:  # torch has not this operation in this dtype, or no memory for it
        device.synchronize()
        return None
    replays = _replayed(device, torch_call, warmup_ms, rep_ms) if graph else None
    return statistics.median(replays or samples)


def _ceiling(device: Stopwatch, cost: Cost) -> tuple[float | None, str]:
    """Return the milliseconds that the device's ceilings allow `cost`, and the ceiling that bounds it."""
    copy = device.copy_rate()
    bounds = [(cost.bytes / copy * 1e3, f"copy {copy / 1e9:.0f} GB/s")]
    if cost.unit:
        matrix = device.matrix_rate(cost.unit)
        if matrix is None:
            return None, ""  # which of the two bounds the case is not known
        operations = "TOP/s" if cost.unit.startswith("int") else "TFLOP/s"
        bounds.append((cost.flops / matrix * 1e3, f"matmul {cost.unit} {matrix / 1e12:.0f} {operations}"))
    return max(bounds)


# ------------------------------------------------------------------------------------------------------ locks


@contextlib.contextmanager
def device_lock(name: str, *, exclusive: bool, folder: Path = LOCKS) -> Iterator[None]:
    """Hold device `name` (its UUID): `exclusive` to time on it, shared to run on it; over processes and users.

    Two locked files: who wants the device exclusively holds the gate while waiting, and who comes later waits at the
    gate, so that a stream of shared holders cannot keep a timing waiting for ever. The locks end with their process.
    Not to be taken again within itself.
    """
    import fcntl  # not on Windows, where no device runs

    mode = fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH
    stem = "triton-portability-" + re.sub(r"[^A-Za-z0-9.-]", "_", name)
    with _opened(folder / f"{stem}.gate") as gate, _opened(folder / f"{stem}.lock") as lock:
        fcntl.flock(gate, mode)
        fcntl.flock(lock, mode)
        fcntl.flock(gate, fcntl.LOCK_UN)
        yield


@contextlib.contextmanager
def _opened(file: Path) -> Iterator[int]:
    """Open a file that every user may open, and make it so if it is new.

    An existing file is opened without O_CREAT: Linux refuses that for another user's file in a sticky folder
    (fs.protected_regular).
    """
    while True:
        try:
            descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)  # `flock` needs no more
            break
        except FileNotFoundError:
            with contextlib.suppress(FileExistsError):  # another process made it first: open that one
                descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
                os.fchmod(descriptor, 0o666)  # whatever the umask
                break
    try:
        yield descriptor
    finally:
        os.close(descriptor)
