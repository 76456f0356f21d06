"""Timing on a device whose clock is arithmetic: what is counted, what is flushed, what is refused."""

import os
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from portability.kernel import Cost
from portability.timing import LEAST, bench, device_lock, measure, quantiles


class FakeDevice:
    """Executes at once on a clock of its own. A call costs `cold` after a flush, `warm` otherwise, and `host` on top
    where it is launched and not replayed. Milliseconds.
    """

    def __init__(
        self,
        cold: float = 1.0,
        warm: float = 0.1,
        host: float = 0.0,
        flush: float = 0.5,
        wobble: Sequence[float] = (0.0,),
        copy: float = 1e12,
        matrix: Mapping[str, float] | None = None,
        host_wobble: Sequence[float] = (0.0,),
    ) -> None:
        self.cold, self.warm, self.host, self.flush_ms = cold, warm, host, flush
        self.host_wobble = host_wobble
        self.wobble, self.copy, self.matrix = wobble, copy, matrix or {}
        self.clock = 0.0
        self.flushed = False
        self.calls = 0
        self.recording: list[Callable[[], None]] | None = None
        self.capturable = True
        self.fault: Exception | None = None

    def call(self) -> None:
        if self.recording is not None:
            if not self.capturable:
                raise RuntimeError("operation not permitted when stream is capturing")
            self.recording.append(self._execute)
            return
        self.clock += self.host + self.host_wobble[self.calls % len(self.host_wobble)]
        self._execute()

    def _execute(self) -> None:
        self.clock += (self.cold if self.flushed else self.warm) + self.wobble[self.calls % len(self.wobble)]
        self.flushed = False
        self.calls += 1

    def flush(self) -> None:
        if self.recording is not None:
            self.recording.append(self._flush)
        else:
            self._flush()

    def _flush(self) -> None:
        self.clock += self.flush_ms
        self.flushed = True

    def synchronize(self) -> None:
        if self.fault:
            raise self.fault

    def mark(self) -> float:
        return self.clock

    def between(self, start: float, end: float) -> float:
        return end - start

    def capture(self, calls: Callable[[], None]) -> Callable[[], None]:
        recorded: list[Callable[[], None]] = []
        self.recording = recorded
        try:
            calls()
        finally:
            self.recording = None

        def replay() -> None:
            for step in recorded:
                step()

        return replay

    def copy_rate(self) -> float:
        return self.copy

    def matrix_rate(self, unit: str) -> float | None:
        return self.matrix.get(unit)


def test_quantiles_are_interpolated_linearly() -> None:
    assert quantiles([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]) == (3, 6, 9)
    assert quantiles([10.0, 20.0]) == (12.0, 15.0, 18.0)


def test_every_call_finds_cold_caches_and_the_flush_is_not_counted() -> None:
    device = FakeDevice(cold=1.0, warm=0.1, flush=0.5)
    assert bench(device, device.call, 5, 50) == pytest.approx([1.0] * int(50 / 1.5))


def test_calls_in_a_graph_find_cold_caches_and_the_flush_is_not_counted() -> None:
    device = FakeDevice(cold=0.004, warm=0.001, host=0.03, flush=0.1)
    assert bench(device, device.call, 5, 50, graph=True) == pytest.approx(
        [0.004] * len(bench(device, device.call, 5, 50, True))
    )


def test_the_host_is_part_of_a_launch_and_not_of_a_replay() -> None:
    device = FakeDevice(cold=0.004, host=0.03)
    timing = measure(device, device.call)
    assert timing.method == "graph"
    assert timing.median == pytest.approx(0.004)
    assert timing.launch_median == pytest.approx(0.034)


def test_a_long_call_is_not_replayed() -> None:
    device = FakeDevice(cold=2.0)
    timing = measure(device, device.call)
    assert (timing.method, timing.launch_median) == ("launch", None)


def test_a_long_call_that_waits_for_an_unsteady_host_is_replayed() -> None:
    device = FakeDevice(cold=0.5, host_wobble=(0.1, 0.4))
    timing = measure(device, device.call)
    assert (timing.method, timing.stable) == ("graph", True)
    assert timing.median == pytest.approx(0.5)
    assert timing.launch_median == pytest.approx(0.75, abs=0.2)


def test_a_device_that_is_unsteady_itself_is_not_smoothed_by_replays() -> None:
    device = FakeDevice(cold=0.5, wobble=(0.0, 0.2))
    timing = measure(device, device.call)
    assert (timing.method, timing.stable, timing.launch_median) == ("launch", False, None)


def test_a_long_call_that_varies_is_not_repeated_without_end() -> None:
    """A replay is of CALLS calls, however long each is: where no host can be the cause there is none."""
    steady, varying = FakeDevice(cold=50.0), FakeDevice(cold=50.0, wobble=(0.0, 20.0))
    for device in (steady, varying):
        measure(device, device.call)
    assert varying.clock < 1.5 * steady.clock


def test_a_call_shorter_than_the_clock_tells_apart_has_no_rate() -> None:
    device = FakeDevice(cold=0.0, warm=0.0)
    timing = measure(device, device.call, cost=Cost(bytes=1e9, flops=1e9, unit="float16"))
    assert (timing.median, timing.gbps, timing.tflops, timing.ceiling) == (0.0, None, None, None)


@pytest.mark.parametrize("graph", [False, True])
def test_periods_are_kept(graph: bool) -> None:
    device = FakeDevice(cold=0.5, flush=0.5)
    bench(device, device.call, 100, 400, graph)
    assert 480 < device.clock < 1100  # the least number of replays of a graph, whose two halves last 50 ms


def test_a_call_longer_than_its_period_is_still_repeated() -> None:
    device = FakeDevice(cold=500.0)
    assert len(bench(device, device.call, 10, 20)) == LEAST


def test_a_time_that_varies_is_unstable() -> None:
    device = FakeDevice(cold=1.0, wobble=(0.0, 0.3))
    timing = measure(device, device.call)
    assert not timing.stable
    assert timing.spread == pytest.approx((timing.p80 - timing.p20) / timing.median)
    assert measure(device, device.call, unstable=0.5).stable


def test_rates_follow_from_the_cost() -> None:
    device = FakeDevice(cold=2.0, copy=1e12, matrix={"float16": 1e14})
    timing = measure(device, device.call, cost=Cost(bytes=1e9, flops=1e11, unit="float16"))
    assert timing.gbps == pytest.approx(500)
    assert timing.tflops == pytest.approx(50)


@pytest.mark.parametrize(
    ("flops", "fraction", "of"),
    [(1e10, 0.5, "copy 1000 GB/s"), (1.6e11, 0.8, "matmul float16 100 TFLOP/s")],
)
def test_the_ceiling_that_bounds_is_the_one_that_takes_longer(flops: float, fraction: float, of: str) -> None:
    device = FakeDevice(cold=2.0, copy=1e12, matrix={"float16": 1e14})
    timing = measure(device, device.call, cost=Cost(bytes=1e9, flops=flops, unit="float16"))
    assert timing.ceiling == pytest.approx(fraction)
    assert timing.ceiling_of == of


def test_a_ceiling_that_cannot_be_measured_is_not_guessed() -> None:
    device = FakeDevice(cold=2.0)
    timing = measure(device, device.call, cost=Cost(bytes=1e9, flops=1e12, unit="float8_e4m3fnuz"))
    assert (timing.ceiling, timing.ceiling_of) == (None, "")


def test_torch_is_timed_in_the_same_way() -> None:
    device = FakeDevice(cold=0.02, warm=0.01, host=0.03)

    def twice() -> None:
        device.call()
        device.call()

    timing = measure(device, device.call, twice)
    assert timing.method == "graph"
    assert timing.torch_median == pytest.approx(0.03)


def test_what_torch_lacks_has_no_time() -> None:
    device = FakeDevice()

    def absent() -> None:
        raise NotImplementedError('"add_stub" not implemented for float8')

    assert measure(device, device.call, absent).torch_median is None


def test_a_fault_of_the_device_is_not_taken_for_something_that_torch_lacks() -> None:
    device = FakeDevice()

    def faulty() -> None:
        device.fault = RuntimeError("an illegal memory access was encountered")
        raise device.fault

    with pytest.raises(RuntimeError, match="illegal memory access"):
        measure(device, device.call, faulty)


def test_a_short_call_that_cannot_be_captured_keeps_its_launch() -> None:
    device = FakeDevice(cold=0.004, host=0.03)
    device.capturable = False
    timing = measure(device, device.call)
    assert timing.method == "launch"
    assert timing.median == pytest.approx(0.034)


# ------------------------------------------------------------------------------------------------------ locks


def taken(folder: Path, exclusive: bool, seconds: float = 0.2) -> bool:
    """Whether the lock can be taken within `seconds`."""
    got = threading.Event()

    def take() -> None:
        with device_lock("GPU-1", exclusive=exclusive, folder=folder):
            got.set()

    threading.Thread(target=take, daemon=True).start()
    return got.wait(seconds)


def test_runs_share_a_device(tmp_path: Path) -> None:
    with device_lock("GPU-1", exclusive=False, folder=tmp_path):
        assert taken(tmp_path, exclusive=False)


@pytest.mark.parametrize(("held", "wanted"), [(True, True), (True, False), (False, True)])
def test_a_timing_is_alone_on_its_device(tmp_path: Path, held: bool, wanted: bool) -> None:
    with device_lock("GPU-1", exclusive=held, folder=tmp_path):
        assert not taken(tmp_path, exclusive=wanted)
    assert taken(tmp_path, exclusive=True, seconds=5)


def test_devices_are_locked_one_by_one(tmp_path: Path) -> None:
    with device_lock("GPU-2", exclusive=True, folder=tmp_path):
        assert taken(tmp_path, exclusive=True)


def test_later_runs_wait_behind_a_waiting_timing(tmp_path: Path) -> None:
    with device_lock("GPU-1", exclusive=False, folder=tmp_path):
        assert not taken(tmp_path, exclusive=True)
        assert not taken(tmp_path, exclusive=False)  # it would be granted at once if nobody waited


def test_other_users_may_open_the_lock_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        with device_lock("GPU-1/0", exclusive=True, folder=tmp_path):
            modes = {stat.S_IMODE(f.stat().st_mode) for f in tmp_path.iterdir()}
    finally:
        os.umask(before)
    assert modes == {0o666}


def test_a_killed_holder_leaves_no_lock(tmp_path: Path) -> None:
    program = (
        "import sys, time; from pathlib import Path; from portability.timing import device_lock\n"
        "with device_lock('GPU-1', exclusive=True, folder=Path(sys.argv[1])): print('held', flush=True); time.sleep(60)"
    )
    holder = subprocess.Popen([sys.executable, "-c", program, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    with holder.stdout:
        assert holder.stdout.readline() == "held\n"
    assert not taken(tmp_path, exclusive=False)
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    assert taken(tmp_path, exclusive=True, seconds=5)
