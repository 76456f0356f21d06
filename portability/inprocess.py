"""Cells in pytest's own process (`--in-process`): a debugger stops in a kernel under the interpreter.

What a runner isolates is not isolated here: a crash ends pytest. Variables of the shell are set aside first, as for a
runner.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from portability import catalogue as catalogues
from portability.catalogue import Catalogue
from portability.harness import Harness
from portability.kernel import discover
from portability.model import Cell, Evidence, Observation, Verdict
from portability.pool import SCRUBBED, unavailable, variables_of


class InProcess:
    """A harness's stand-in for `test_cell`, without a runner."""

    def __init__(self, harness: Harness) -> None:
        self._harness = harness
        for name in [n for n in os.environ if SCRUBBED.match(n)]:
            del os.environ[name]
        os.environ.update(variables_of(harness.environment("default")))
        self._cases = discover(harness.matrix.kernels).cases

    @property
    def catalogue(self) -> Catalogue:
        """What there is here."""
        return self._harness.catalogue

    def run(self, cell: Cell) -> Observation:
        """Return what happened to `cell`, here."""
        from portability.run import Options, run_cell

        harness = self._harness
        target, case = harness.catalogue.target(cell), harness.catalogue.case(cell.kernel)
        if target.evidence is Evidence.NONE:
            return unavailable(cell, target)
        blocks, source = catalogues.blocks_of(cell, case, harness.matrix, harness.adapters, target)
        options: Mapping[str, Any] = harness.options
        adapter = harness.adapters[target.backend]
        return run_cell(cell, self._cases[cell.kernel], adapter, target, blocks, source, Options(**options))

    def judge(self, observation: Observation) -> Verdict:
        """Return the standing of an observation."""
        return self._harness.judge(observation)
