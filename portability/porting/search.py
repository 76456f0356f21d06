"""The blocks of one case on one target: configurations tried through the harness, ranked, and checked by interpreting.

What a configuration promises is `portability.tuning`'s to say; this is the way there, of `portability tune` and of a
port alike.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from portability import tuning
from portability.harness import Harness
from portability.model import CaseInfo, Cell, Evidence, Observation, Outcome, SampleInfo, Target
from portability.tuning import Trial

AROUND = (-2, -1, 0, 1)  # powers of two beside a block whose case declares no space


@dataclass(frozen=True)
class Search:
    """What was tried for one cell, and what of it fits, the best first."""

    cell: Cell
    target: Target
    trials: tuple[Trial, ...]
    ranked: tuple[Trial, ...]

    @property
    def timed(self) -> bool:
        """Whether the ranking is by time."""
        return bool(self.ranked) and self.ranked[0].median is not None

    @property
    def failed(self) -> int:
        """How many configurations do not work."""
        return sum(t.observation.outcome is not Outcome.PASS for t in self.trials)

    @property
    def spilling(self) -> int:
        """How many work, and spill registers."""
        return sum(t.observation.outcome is Outcome.PASS and t.spills > 0 for t in self.trials)

    @property
    def found(self) -> str:
        """How the ranking was made, for an entry of a block table."""
        version = self.target.versions.get("triton", "")
        return f"measured on {self.target.device}, Triton {version}" if self.timed else (
            f"search without hardware, Triton {version}"
        )  # fmt: skip


def search(harness: Harness, cell: Cell, target: Target, blocks: Iterable[Mapping[str, int]]) -> Search:
    """Try each configuration once, in order, on `target`."""
    distinct = {tuple(sorted(b.items())): dict(b) for b in blocks}
    trials = tuple(Trial(b, harness.run_with(cell, target, b, "tune")) for b in distinct.values())
    unit_warps = harness.adapters[target.backend].limits_of(target.id).unit_warps
    return Search(cell, target, trials, tuple(tuning.rank(trials, unit_warps)))


def sample_for(case: CaseInfo, dtype: str, target: Target) -> SampleInfo:
    """Return the sample to search with: a timed one where the hardware is, else the quick one."""
    usable = [s for s in case.samples if not s.dtypes or dtype in s.dtypes]
    timed = [s for s in usable if s.bench and target.evidence is Evidence.RAN]
    return (timed or [s for s in usable if s.quick and not s.bench] or usable)[0]


def interpreted(harness: Harness, cell: Cell, blocks: Mapping[str, int]) -> Observation | None:
    """Return what the interpreter makes of the same blocks on the quick sample; None where nothing here interprets."""
    case = harness.catalogue.case(cell.kernel)
    usable = [s for s in case.samples if not s.bench and (not s.dtypes or cell.dtype in s.dtypes)]
    sample = next((s for s in usable if s.quick), next(iter(usable), None))
    for target in harness.catalogue.targets:
        if target.evidence is Evidence.INTERPRETED and sample is not None:
            here = Cell(case.name, cell.dtype, sample.name, target.id, target.environment)
            return harness.run_with(here, target, blocks, "tune")
    return None


def neighbours(
    space: Mapping[str, Sequence[int]], blocks: Mapping[str, int], base: Mapping[str, int], most: int
) -> list[dict[str, int]]:
    """Return at most `most` configurations of `space` for a target that does not take `blocks`.

    Half of them are the nearest to `blocks`, in steps of a factor of two, smaller ones before larger ones; the other
    half is spread over the whole space. What the space does not name is `base`'s.
    """
    names = list(space)
    made = [{**base, **dict(zip(names, values, strict=True))} for values in itertools.product(*space.values())]
    nearest = sorted(made, key=lambda m: _distance(m, blocks, names))[: most // 2]
    return [*nearest, *tuning.candidates(space, base, most - len(nearest))]


def _distance(made: Mapping[str, int], blocks: Mapping[str, int], names: Sequence[str]) -> tuple[float, float]:
    steps = [_steps(made[n], blocks.get(n, made[n])) for n in names]
    return sum(map(abs, steps)), sum(steps)


def _steps(value: int, of: int) -> float:
    return math.log2(value / of) if value > 0 and of > 0 else float(value != of)


def space_of(case: CaseInfo) -> Mapping[str, Sequence[int]]:
    """Return the case's declared space or, without one, the powers of two around its own blocks."""
    if case.space:
        return case.space
    sizes = {n: v for n, v in case.blocks.items() if not isinstance(v, bool) and v > 1 and v & (v - 1) == 0}
    return {n: tuple(v for s in AROUND if (v := int(size * 2.0**s)) >= 1) for n, size in sizes.items()}


def on_target(cell: Cell, target: Target) -> Cell:
    """Return the same kernel, dtype and sample on another target."""
    return replace(cell, target=target.id, environment=target.environment)


def entry_of(case: CaseInfo, selector: str, blocks: Mapping[str, int], found: str) -> str:
    """Return the lines of a block table for what the search varied: in full, since general entries may differ."""
    varied = {n: v for n, v in blocks.items() if n in space_of(case)}
    return tuning.entry(case.name, selector, varied, {}, found)
