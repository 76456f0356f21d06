"""The committed runs, and README's table, which is made from them."""

from __future__ import annotations

from pathlib import Path

import pytest

from portability import report
from portability.commands.table import unmatched
from portability.merge import merge
from portability.model import Evidence, Outcome
from portability.results import read_run
from portability.site.markers import in_step

ROOT = Path(__file__).resolve().parents[1]
FILES = sorted((ROOT / "results").glob("*.jsonl"))


def test_there_is_one_of_a_device_and_one_without() -> None:
    best = {max((o.evidence.rank for o in read_run(f).observations), default=0) for f in FILES}
    assert {Evidence.RAN.rank, Evidence.INTERPRETED.rank} <= best


@pytest.mark.parametrize("file", FILES, ids=lambda f: f.name)
def test_a_published_run_is_whole_and_small(file: Path) -> None:
    """It came to its end, was made from a commit, holds no path of a machine, and takes at most 2 MB."""
    run = read_run(file)
    assert not run.interrupted
    assert run.header.provenance.triton
    assert file.stat().st_size <= 2_000_000
    assert not [o for o in run.observations if o.outcome is Outcome.HARNESS_ERROR]
    assert "/tmp/" not in file.read_text()


def test_readme_is_in_step_with_the_published_runs() -> None:
    runs = [read_run(f) for f in FILES]
    assert in_step(ROOT / "README.md", report.build(merge(runs), unmatched=unmatched(runs)))
