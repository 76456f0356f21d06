"""The fourth step: which blocks fit the destination, for all dtypes at once where that goes, and are right."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from portability.backend import DEFAULT, Resolved, look_up_blocks
from portability.harness import Harness
from portability.kernel import Blocks
from portability.model import CaseInfo, Cell, Evidence, Observation, Outcome
from portability.porting import advice
from portability.porting.ends import End
from portability.porting.model import Attempt, Choice, Entry, Ranked
from portability.porting.search import Search, entry_of, interpreted, neighbours, sample_for, search, space_of
from portability.tuning import Trial

SHOWN = 5  # configurations of a ranking
HOPELESS = 4  # configurations that fail with the source's own words: blocks are not what is wrong


class Fitting:
    """Searches one case's blocks on the destination."""

    def __init__(
        self, harness: Harness, case: CaseInfo, destination: End, most: int, aligned: str, quick: bool = False
    ) -> None:
        """`aligned` names the sample that needs the most memory, where that is known; `quick` tries the quick one."""
        self.harness, self.case, self.most, self.aligned = harness, case, most, aligned
        self.destination, self.quick = destination, quick

    def choices(self, attempts: Sequence[Attempt]) -> list[Choice]:
        """Return what the destination takes: one choice for all dtypes, and one for each that it does not fit."""
        counted = [a for a in attempts if a.claimed and not a.fails_on_both]
        if not counted:
            return []
        failing = list(dict.fromkeys(a.dtype for a in counted if not a.moves))
        if self.destination.target.evidence is Evidence.INTERPRETED or not (self.case.blocks or self.case.space):
            return [self._unmovable(d, counted) for d in failing]
        if not self.most:
            return [self._unsearched(d, counted) for d in failing]
        if not failing:
            return [self._shown(counted[0].dtype, counted)]
        return self._settle(failing, counted)

    def _settle(self, failing: Sequence[str], counted: Sequence[Attempt]) -> list[Choice]:
        """Search for the first dtype that fails, try what is found on the others, and search again for what is left."""
        found: list[Choice] = []
        everything = list(dict.fromkeys(a.dtype for a in counted))
        for dtype in failing:
            if any(dtype in c.dtypes for c in found):
                continue
            choice, trial = self._search(dtype, counted)
            if trial is not None:
                others = [d for d in failing if d != dtype and self._fits(d, trial.blocks)]
                choice = self._entered(choice, trial, (dtype, *others), everything)
            found.append(choice)
        return found

    # ------------------------------------------------------------------------------------------- one search

    def _search(self, dtype: str, counted: Sequence[Attempt]) -> tuple[Choice, Trial | None]:
        """Return the ranking for one dtype, and the first of it that fits every sample and is right interpreted.

        Blocks that the destination's table names for it come before the ranking: they were chosen by somebody.
        """
        attempt = next(a for a in counted if a.dtype == dtype and not a.moves)
        made = self._tried(dtype, attempt)
        choice, own = self._choice(dtype, made), self._own(dtype)
        ranked = sorted(made.ranked, key=lambda t: own.source == DEFAULT or dict(t.blocks) != dict(own.blocks))
        for trial in ranked:
            observation = interpreted(self.harness, made.cell, trial.blocks)
            choice = replace(choice, interpreted=_words(observation))
            right = observation is None or observation.outcome is Outcome.PASS
            if right and self._every_sample(made.cell, trial.blocks):
                return choice, trial
        only_spills = all(a.outcome is Outcome.PASS for a in counted if a.dtype == dtype)
        return replace(choice, why="" if only_spills else self._why(attempt, made)), None

    def _tried(self, dtype: str, attempt: Attempt) -> Search:
        """Try the source's blocks, the destination's own, and some of the space; stop where blocks do not matter."""
        target, own = self.destination.target, self._own(dtype).blocks
        failing = "" if attempt.moves or target.evidence.executes else attempt.sample
        cell = self._cell(dtype, failing)
        first: list[Mapping[str, int]] = [attempt.blocks, own]
        rest = neighbours(space_of(self.case), attempt.blocks, own, self.most)
        made = search(self.harness, cell, target, [*first, *rest[:HOPELESS]])
        if attempt.outcome is Outcome.COMPILE_ERROR and _alike(made.trials):
            return made
        return search(self.harness, cell, target, [*(t.blocks for t in made.trials), *rest[HOPELESS:]])

    def _shown(self, dtype: str, counted: Sequence[Attempt]) -> Choice:
        """Return a ranking for a kernel that moves: the source's blocks among the others, and nothing to be entered."""
        attempt = next(a for a in counted if a.dtype == dtype)
        made = self._tried(dtype, attempt)
        observation = interpreted(self.harness, made.cell, attempt.blocks)
        return replace(self._choice(dtype, made), blocks=self._varied(attempt.blocks), interpreted=_words(observation))

    def _choice(self, dtype: str, made: Search) -> Choice:
        ranked = tuple(self._ranked(t) for t in made.ranked[:SHOWN])
        return Choice((dtype,), {}, "", ranked, len(made.trials), made.failed, made.spilling, made.found)

    def _entered(self, choice: Choice, trial: Trial, dtypes: tuple[str, ...], everything: Sequence[str]) -> Choice:
        """Return the choice with the entries that the destination's table lacks: one where every dtype takes them."""
        target = self.destination.target.id
        lacking = [d for d in dtypes if dict(self._own(d).blocks) != dict(trial.blocks)]
        whole = bool(lacking) and set(dtypes) == set(everything)
        selectors = [target] if whole else [f"{target}/{d}" for d in lacking]
        entries = tuple(Entry(s, entry_of(self.case, s, trial.blocks, choice.found)) for s in selectors)
        place = "" if lacking else self._own(dtypes[0]).source
        return replace(choice, dtypes=dtypes, blocks=self._varied(trial.blocks), blocks_from=place, entries=entries)

    def _ranked(self, trial: Trial) -> Ranked:
        resources = trial.observation.resources
        return Ranked(
            self._varied(trial.blocks), trial.median, max((r.registers or 0 for r in resources), default=0),
            max((r.shared or 0 for r in resources), default=0), trial.occupancy, trial.matrix,
        )  # fmt: skip

    def _varied(self, blocks: Mapping[str, int]) -> dict[str, int]:
        """Leave out what is the same in every configuration."""
        return {n: v for n, v in blocks.items() if n in space_of(self.case)}

    # --------------------------------------------------------------------------------------------- what else

    def _unmovable(self, dtype: str, counted: Sequence[Attempt]) -> Choice:
        attempt = next(a for a in counted if a.dtype == dtype and not a.moves)
        return Choice((dtype,), why=_change(attempt))

    def _unsearched(self, dtype: str, counted: Sequence[Attempt]) -> Choice:
        """Return the destination's own blocks where they fit, since none were searched."""
        own = self._own(dtype)
        if self._fits(dtype, own.blocks):
            return Choice((dtype,), self._varied(own.blocks), own.source)
        return self._unmovable(dtype, counted)

    def _why(self, attempt: Attempt, made: Search) -> str:
        if any(t.observation.outcome is Outcome.PASS for t in made.trials):
            tried = f"of {len(made.trials)} blocks, those that compile spill, or are wrong when interpreted"
            return f"{attempt.dtype}: {tried}: try more by --most"
        return _change(attempt)

    def _own(self, dtype: str) -> Resolved:
        default, matrix, end = Blocks(dict(self.case.blocks)), self.harness.matrix, self.destination
        return look_up_blocks(end.adapter, self.case.name, end.target.id, dtype, default, matrix.blocks)

    def _cell(self, dtype: str, sample: str = "") -> Cell:
        target = self.destination.target
        aligned = self.aligned if self.aligned in self._plain(dtype) and not target.evidence.executes else ""
        name = sample or aligned or sample_for(self.case, dtype, target).name
        return Cell(self.case.name, dtype, name, target.id, target.environment)

    def _plain(self, dtype: str) -> list[str]:
        return [s.name for s in self.case.samples if not s.bench and (not s.dtypes or dtype in s.dtypes)]

    def _fits(self, dtype: str, blocks: Mapping[str, int]) -> bool:
        """Whether the blocks fit another dtype, on the sample that needs the most memory and on the quick one."""
        quick = sample_for(self.case, dtype, self.destination.target).name
        cells = dict.fromkeys((self._cell(dtype), self._cell(dtype, quick)))
        return all(Trial(blocks, self._run(cell, blocks)).fits for cell in cells)

    def _every_sample(self, cell: Cell, blocks: Mapping[str, int]) -> bool:
        """Whether the other samples take the blocks too."""
        names = [] if self.quick else self._plain(cell.dtype)
        others = (replace(cell, sample=name) for name in names if name != cell.sample)
        return all(self._run(other, blocks).outcome is Outcome.PASS for other in others)

    def _run(self, cell: Cell, blocks: Mapping[str, int]) -> Observation:
        return self.harness.run_with(cell, self.destination.target, blocks, "port")


def _alike(trials: Iterable[Trial]) -> bool:
    """Whether every configuration fails, and with the same words."""
    said = {(t.observation.outcome, t.observation.detail.split("\n")[0]) for t in trials}
    return len(said) == 1 and next(iter(said))[0] is not Outcome.PASS


def _change(attempt: Attempt) -> str:
    place = f"{attempt.line}: " if attempt.line else ""
    said = f": {attempt.advice}" if attempt.advice and attempt.advice != advice.SMALLER else ""
    return f"{place}{attempt.dtype}: {(attempt.detail or str(attempt.outcome)).rstrip('.')}{said}"


def _words(observation: Observation | None) -> str:
    """Say what the interpreter found of the new blocks."""
    if observation is None:
        return "not interpreted: no interpreter is here"
    if observation.outcome is Outcome.PASS:
        accuracy = observation.accuracy
        within = f", error {accuracy.ratio:.2g} of what is allowed" if accuracy is not None else ""
        return f"right on {observation.cell.dtype} {observation.cell.sample}{within}"
    return f"{observation.outcome}: {(observation.detail.splitlines() or [''])[0]}"
