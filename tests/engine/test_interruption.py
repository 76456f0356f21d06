"""Whatever ends a run, its finished cells are kept, and `--resume` goes on from there."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from portability.results import ResultsError, read_run

from .conftest import ROOT, Project

pytestmark = pytest.mark.slow  # starts whole runs: `pytest -m slow`


MATRIX = '[matrix]\nkernels = ["faulty.cases"]\n'
SLOW = ["slow", "--target", "interpreter", "-n", "2"]
CELLS = 12
# A shell starts what it runs in the background with SIGINT ignored, and so do all programs that come of it.
LISTEN = "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); os.execv(sys.executable, sys.argv[1:])"


def begin(project: Project, results: Path) -> subprocess.Popen[str]:
    """Start a run of twelve slow cells."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}
    command = [sys.executable, "-c", LISTEN, sys.executable, "-m", "portability.cli", "run", *SLOW]
    command += ["--results", str(results)]
    paths = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
    return subprocess.Popen(
        command, cwd=project.folder, env={**kept, "PYTHONPATH": paths, "TMPDIR": str(project.temporary)},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
    )  # fmt: skip


def wait_for_cells(results: Path, count: int, process: subprocess.Popen[str]) -> None:
    """Return when the file holds that many observations."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        with contextlib.suppress(ResultsError):  # not there yet, or its header is being written
            if len(read_run(results).observations) >= count:
                return
        assert process.poll() is None, process.stdout and process.stdout.read()
        time.sleep(0.1)
    raise AssertionError("no cell was finished in time")


@pytest.mark.parametrize("signal_number", [signal.SIGINT, signal.SIGKILL], ids=["ctrl-c", "killed"])
def test_an_ended_run_is_gone_on_with(
    project: Callable[[str], Project], tmp_path: Path, signal_number: signal.Signals
) -> None:
    """After Ctrl-C and after a kill the file has no footer; resuming runs the rest, and the file is then whole."""
    made, results = project(MATRIX), tmp_path / "run.jsonl"
    process = begin(made, results)
    wait_for_cells(results, 3, process)
    process.send_signal(signal_number)
    process.communicate(timeout=60)
    first = read_run(results)
    assert first.interrupted
    assert 3 <= len(first.observations) < CELLS
    done = made.portability("run", *SLOW, "--resume", str(results))
    whole = read_run(results)
    assert done.returncode == 0, done.stdout
    assert not whole.interrupted
    assert len(whole.observations) == CELLS
    kept = {o.cell: o.when for o in first.observations}
    assert all(o.when == kept[o.cell] for o in whole.observations if o.cell in kept), "finished cells are not run again"
    assert f"{CELLS} cells" in done.stdout, "the table is that of the whole file"


def test_a_killed_worker_costs_one_cell(project: Callable[[str], Project], tmp_path: Path) -> None:
    """pytest-xdist replaces a worker that dies; its cell is recorded as a crash and the others finish."""
    made, results = project(MATRIX), tmp_path / "run.jsonl"
    process = begin(made, results)
    wait_for_cells(results, 2, process)
    worker = next(
        int(p.name) for p in Path("/proc").iterdir()
        if p.name.isdigit() and _parent(p) == process.pid and b"exec(eval(" in _command(p)
    )  # fmt: skip
    os.kill(worker, signal.SIGKILL)
    said, _ = process.communicate(timeout=120)
    run = read_run(results)
    outcomes = [str(o.outcome) for o in run.observations]
    assert len(outcomes) == CELLS, said
    assert outcomes.count("crash") == 1
    assert process.returncode == 1


def test_a_full_disk_keeps_what_is_finished(project: Callable[[str], Project], tmp_path: Path) -> None:
    """A file that can grow no more ends the run with an error that names it; its lines stay whole."""
    made, results = project(MATRIX), tmp_path / "run.jsonl"
    process = begin(made, results)
    wait_for_cells(results, 1, process)
    limit = results.stat().st_size + 1500  # two or three observations more
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (limit, limit))
    said, _ = process.communicate(timeout=120)
    assert process.returncode not in (0, None), said
    assert "run.jsonl: cannot be written" in said, said[-2000:]
    assert 1 <= len(read_run(results).observations) < CELLS


def _parent(process: Path) -> int:
    try:
        return int((process / "stat").read_text().rpartition(")")[2].split()[1])
    except (OSError, IndexError):
        return 0


def _command(process: Path) -> bytes:
    try:
        return (process / "cmdline").read_bytes()
    except OSError:
        return b""
