"""The one parametrized test. A project takes it with `from portability.testing import test_cell`."""

from __future__ import annotations

from typing import Any

import pytest

from portability.baselines.records import with_baseline
from portability.harness import Harness
from portability.model import Cell, Evidence, Outcome
from portability.results import observation_line


def test_cell(portability_cell: Cell, portability_harness: Harness, record_property: Any) -> None:
    """Each cell does what matrix.toml declares of it: `pass`, unless a rule names another outcome."""
    names = portability_harness.catalogue.case(portability_cell.kernel).names
    observation = with_baseline(portability_harness.run(portability_cell), names)
    verdict = portability_harness.judge(observation)
    record_property("evidence", str(observation.evidence))
    record_property("outcome", str(observation.outcome))
    record_property("standing", str(verdict.standing))
    record_property("observation", observation_line(observation).rstrip())  # xdist is slow with what is nested
    if observation.outcome is Outcome.UNAVAILABLE:
        pytest.skip(f"{portability_cell.target}: {observation.detail}")
    if verdict.standing.fails:
        where = f"{observation.line}: " if observation.line else ""
        pytest.fail(f"{verdict.standing}: {verdict.why}\n{where}{observation.detail}", pytrace=False)
    assert observation.evidence is not Evidence.NONE, "a cell that nothing could try is unavailable"
