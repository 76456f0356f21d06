"""The committed runs, and README's table, which is made from them."""

from __future__ import annotations

from pathlib import Path

import pytest

from portability import report
from portability.commands.table import unmatched
from portability.merge import merge
from portability.model import Evidence, Outcome
from portability.results import read_runs
from portability.site.markers import in_step

ROOT = Path(__file__).resolve().parents[1]
FILES = sorted((ROOT / "results").glob("*.jsonl"))


def test_there_is_one_of_a_device_and_one_without() -> None:
    best = {max(o.evidence.rank for run in read_runs(f) for o in run.observations) for f in FILES}
    assert {Evidence.RAN.rank, Evidence.INTERPRETED.rank} <= best


@pytest.mark.parametrize("file", FILES, ids=lambda f: f.name)
def test_a_published_run_is_whole_and_small(file: Path) -> None:
    """One of its runs came to its end; none holds a fault of the harness or a path; it takes at most 2 MB."""
    runs = read_runs(file)
    assert not all(run.interrupted for run in runs)
    assert all(run.header.provenance.triton for run in runs)
    assert file.stat().st_size <= 2_000_000
    assert not [o for run in runs for o in run.observations if o.outcome is Outcome.HARNESS_ERROR]
    assert "/tmp/" not in file.read_text()


@pytest.mark.parametrize("file", FILES, ids=lambda f: f.name)
def test_no_rate_is_above_what_a_device_can_do(file: Path) -> None:
    """A cost that counts what a kernel need not move shows as a rate beyond the ceiling: reads alone come to 1.13."""
    beyond = {
        o.cell.id: round(o.timing.ceiling, 2)
        for run in read_runs(file)
        for o in run.observations
        if o.timing and (o.timing.ceiling or 0) > 1.15
    }
    assert not beyond


def test_readme_is_in_step_with_the_published_runs() -> None:
    runs = [run for f in FILES for run in read_runs(f)]
    assert in_step(ROOT / "README.md", report.build(merge(runs), unmatched=unmatched(runs)))
