"""What the benchmark of the API set says of the whole from what it measured."""

from __future__ import annotations

import importlib.util
import sys
from fnmatch import fnmatchcase
from pathlib import Path
from types import ModuleType

import pytest

from portability.baselines.files import probes

ROOT = Path(__file__).parents[2]
CELLS = sum(len(p.dtypes) for p in probes().values())  # of one target


@pytest.fixture(scope="module")
def api_time() -> ModuleType:
    spec = importlib.util.spec_from_file_location("benchmark_api_time", ROOT / "benchmarks" / "api_time.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where a dataclass looks for its module
    spec.loader.exec_module(module)
    return module


def test_every_probe_is_taken(api_time: ModuleType) -> None:
    assert all(any(fnmatchcase(name, pattern) for pattern in api_time.everything()) for name in probes())


def test_no_kernel_is_taken_for_a_probe(api_time: ModuleType) -> None:
    kernels = [f.stem for f in (ROOT / "kernels").glob("[a-z]*.py")]
    assert not [k for k in kernels if any(fnmatchcase(k, pattern) for pattern in api_time.everything())]


def test_what_was_not_measured_is_said_to_be_extrapolated(api_time: ModuleType) -> None:
    measured, idle = api_time.Cost(CELLS, 20.0, 9.0), api_time.Cost(4, 10.0, 8.0)
    assert f"extrapolated from {CELLS} on cuda:90" in api_time.whole("warm", {"cuda:90": measured}, idle, 2)


@pytest.mark.parametrize(("workers", "seconds"), [(1, 150), (2, 75)])
def test_what_a_run_does_once_counts_once(api_time: ModuleType, workers: int, seconds: int) -> None:
    """Ten seconds above what four cells take, for each of fourteen targets, and those four cells' once."""
    measured, idle = api_time.Cost(CELLS, 20.0, 9.0), api_time.Cost(4, 10.0, 8.0)
    said = api_time.whole("warm", {"cuda:90": measured}, idle, workers)
    assert f": 150 s of the processor, {seconds} s on {workers} cores" in said
