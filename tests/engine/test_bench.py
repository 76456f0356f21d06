"""`portability bench`: sizes are swept on a device whose clock is arithmetic, and each time says what bounds it."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
import torch

from portability.commands.bench import bound, tunings
from portability.kernel import Draw, KernelCase, discover
from portability.model import Timing, Tuning
from portability.results import read_run

from .conftest import Project

GPU = '''
"""A device that computes as the interpreter does, in 5 us and 10 ms for every GB."""

from portability.backend import FLOATS, Backend
from portability.interpret import opened
from portability.model import Evidence, Target
from portability.timing import measure
from tests.engine.test_timing import FakeDevice


class Gpu(Backend):
    name = "gpu"
    targets = ("gpu:1",)
    dtypes = {"*": FLOATS}

    def status(self):
        return [Target("gpu:1", self.name, evidence=Evidence.RAN, device="Invented 1", index=0)]

    def open(self, target):
        return opened(target)

    def measure(self, target, call, torch_call, cost, warmup_ms, rep_ms):
        clock = FakeDevice(cold=0.005 + cost.bytes / 1e8, copy=1e11)
        return measure(clock, clock.call, clock.call, cost, 1, 5)
'''
MATRIX = '[matrix]\nkernels = ["faulty.cases"]\nbackends = ["gpu"]\n'


def timing(median: float, of: str = "copy 1000 GB/s", fraction: float | None = 0.5) -> Timing:
    return Timing(median, median, median, "launch", 9, 1.0, 1.0, stable=True, ceiling=fraction, ceiling_of=of)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (timing(1.4, fraction=0.1), "launch latency"),  # hardly longer than the smallest size
        (timing(1.4, fraction=0.9), "bandwidth"),  # as short, and yet at the ceiling
        (timing(9.0), "bandwidth"),
        (timing(9.0, of="matmul float16 800 TFLOP/s"), "arithmetic"),
        (timing(9.0, of="", fraction=None), "not known: the case has no cost model"),
    ],
)
def test_a_time_says_what_bounds_it(found: Timing, expected: str) -> None:
    """A launch bounds what hardly grows with size; the ceiling that takes longer bounds the rest."""
    assert bound(found, shortest=1.0) == expected


def test_tuning_over_sizes_is_counted_by_kernel() -> None:
    """Keys, configurations and seconds, in a line a kernel; a kernel without a tuner has none."""
    first, second = Tuning("sum_kernel", "64, 128", 3, 1.25), Tuning("sum_kernel", "128, 128", 2, 0.5)
    expected = "sum_kernel: tuned for 2 keys, 3 configurations each at the most, in 1.8 s"
    assert tunings([first, second]) == [expected]
    assert tunings([]) == []


SWEPT = [c for c in discover().cases.values() if c.sweep]
SLOW = ("quantized_matmul_int4", "quantized_matmul_int8")  # quantise 58 million weights


def test_every_timed_kernel_declares_a_sweep() -> None:
    """What has samples for timing has sizes for curves."""
    timed = {c.name for c in discover().cases.values() if any(s.bench for s in c.samples)}
    assert timed <= {c.name for c in SWEPT}


@pytest.mark.parametrize(
    "case", [pytest.param(c, id=c.name, marks=[pytest.mark.slow] if c.name in SLOW else []) for c in SWEPT]
)
def test_a_sweep_goes_by_powers_of_two_and_its_inputs_grow(case: KernelCase) -> None:
    """Each size is twice the one before, and what it counts is in the inputs' shapes."""
    assert case.sweep is not None
    assert all(b == 2 * a for a, b in itertools.pairwise(case.sweep.sizes))
    assert case.sweep.axis
    dtype = getattr(torch, "float16" if "float16" in case.dtypes else case.dtypes[0])
    small, large = (elements(case, dtype, size) for size in case.sweep.sizes[:2])
    assert small < large


def elements(case: KernelCase, dtype: torch.dtype, size: int) -> int:
    """Return how many elements the inputs of a size have, drawn without their values where they are many."""
    assert case.sweep is not None
    inputs = case.sweep.inputs(Shapes(dtype, case.blocks, 0), size)
    return sum(t.numel() for t in inputs if isinstance(t, torch.Tensor))


class Shapes(Draw):
    """Draws zeros: memory that nobody has written to costs nothing."""

    def normal(self, *shape: int, scale: float = 1.0, dtype: torch.dtype | None = None) -> torch.Tensor:
        del scale
        return torch.zeros(shape, dtype=dtype or self.dtype)


@pytest.mark.slow
def test_sizes_are_swept_compared_and_timed(project: Callable[[str], Project]) -> None:
    """Every size is right and timed, is in the results file, and the table says by what it is bound."""
    made = project(MATRIX)
    (made.folder / "gpu.py").write_text(GPU)
    sizes = [word for size in (1024, 4096, 65536) for word in ("--size", str(size))]
    done = made.portability(
        "bench", "vector_add", "--dtype", "float32", *sizes, "--results", "swept.jsonl", "-o", "page"
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "vector_add, float32, Invented 1" in done.stdout
    rows = {words[0]: line for line in done.stdout.splitlines() if (words := line.split()) and words[0].isdigit()}
    assert list(rows) == ["1024", "4096", "65536"]
    assert rows["1024"].endswith("launch latency")
    assert "bandwidth" in rows["65536"]
    swept = read_run(made.folder / "swept.jsonl").observations
    assert [o.cell.sample for o in swept] == ["sweep-1024", "sweep-4096", "sweep-65536"]
    assert all(o.timing and o.timing.gbps and o.outcome == "pass" for o in swept)
    assert "sweep-65536" in (made.folder / "page" / "index.html").read_text()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("right",), "right declares no sweep (KernelCase.sweep); those that do: "),
        (("vector_add", "--size", "0"), "--size 0: a size is a positive number"),
        (("vector_add", "--target", "cuda:90"), "cuda:90 does not run here, and a sweep is a measurement: no device"),
        (("vector_add", "--dtype", "bool"), "--dtype bool: vector_add takes float32, float16"),
        (("vector_adds",), "vector_add"),
    ],
)
def test_what_cannot_be_swept_is_refused(words: tuple[str, ...], says: str, project: Callable[[str], Project]) -> None:
    """Bad input ends with exit code 2 and what would be taken."""
    made = project(MATRIX)
    (made.folder / "gpu.py").write_text(GPU)
    done = made.portability("bench", *words)
    assert (done.returncode, says in done.stderr) == (2, True), done.stdout + done.stderr
