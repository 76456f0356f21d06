"""Porting what a program launched: each kernel of a recording (`portability record`), as it was launched.

The launches are compiled as `portability check` compiles them. Where one does not fit the destination, its own block
sizes, warps and stages are made smaller. What fits then is interpreted beside the recorded launch, with drawn values:
it must give the same, with a grid that is guessed from the recorded one, since the formula is the program's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from portability import tuning
from portability.backend import discover
from portability.checks.differences import precision_of
from portability.checks.model import Fault, Made, Seen
from portability.facts import facts_of
from portability.harness import Harness
from portability.matrix import Matrix, MatrixError
from portability.model import Evidence, Observation, Outcome, Target
from portability.porting import advice, regrid, special
from portability.porting.ends import End, needs
from portability.porting.model import Attempt, Choice, Ranked, Reading, Report
from portability.porting.search import neighbours
from portability.porting.session import SPILLS, Request
from portability.porting.special import Pair
from portability.porting.verdict import judged
from portability.record.cases import MOST_BYTES, MOST_PROGRAMS, Launched, launched, small
from portability.record.check import Request as Check
from portability.record.check import check, learn, observe
from portability.record.model import Call, Grid, Recording, read
from portability.record.tiles import DEFAULT_WARPS, SMALLEST, STAGES, WARPS, tiles, with_tiles
from portability.tuning import Trial
from portability.uses import uses

INTERPRETED = 3  # of the blocks that fit, how many are interpreted until one is right


def port_recording(
    path: Path, request: Request, matrix: Matrix, folder: Path, say: Callable[[str], None],
    patterns: tuple[str, ...] = (),
) -> list[Report]:  # fmt: skip
    """Return a report for each kernel, or for those of the patterns.

    Raises `ValueError` for no recording, for a target that is none, and for a pattern that no kernel has.
    """
    recording = read(path)
    if request.source == request.destination:
        raise MatrixError(f"--from and --to are both {request.source!r}: nothing is moved")
    both = (request.source, request.destination)
    run = check([recording], Check(targets=both, kernels=patterns), folder / "recorded.jsonl", matrix, say)
    targets = {t.id: t for t in run.header.targets}
    adapters = discover(matrix.backends)
    ends = [End(targets[t], adapters[targets[t].backend], facts_of(adapters[targets[t].backend], t)) for t in both]
    seen = {(o.cell.kernel, o.cell.sample, o.cell.target): o for o in run.observations}
    kernels: dict[str, list[Launched]] = {}
    tried = {o.cell.kernel for o in run.observations}
    for launch in launched(recording):
        if launch.name in tried:
            kernels.setdefault(launch.name, []).append(launch)
    harness = Harness(matrix, folder, Path.cwd(), {})
    try:
        learn(harness, both)
        mover = _Mover(harness, recording, ends[0], ends[1], request)
        return [mover.report(name, launches, seen) for name, launches in kernels.items()]
    finally:
        harness.close()


Seen3 = Mapping[tuple[str, str, str], Observation]


class _Mover:
    """Moves the kernels of one recording."""

    def __init__(self, harness: Harness, recording: Recording, source: End, destination: End, request: Request) -> None:
        self.harness, self.recording, self.request = harness, recording, request
        self.source, self.destination = source, destination

    def report(self, name: str, launches: Sequence[Launched], seen: Seen3) -> Report:
        """Return one kernel's report."""
        attempts, pairs, choices, notes = [], [], [], []
        for launch in launches:
            here, there = (seen.get((name, launch.sample, e.target.id)) for e in (self.source, self.destination))
            if there is None or there.outcome in (Outcome.UNAVAILABLE, Outcome.HARNESS_ERROR):
                notes.append(
                    f"{launch.sample} was not tried: {there.detail if there else 'it is too large to interpret'}"
                )
                continue
            attempt = self._tuned(launch, here, self._attempt(launch, here, there))
            attempts.append(attempt)
            pairs.append(Pair(launch.dtype, _readings(launch, here), _readings(launch, there)))
            if attempt.claimed and not attempt.moves and not attempt.fails_on_both:
                choices.append(self._choice(launch, attempt))
        call, dtypes = launches[0].calls[0], list(dict.fromkeys(x.dtype for x in launches))
        names = _names(call)
        asked = names if self.request.names else ()
        report = Report(
            name, self.source.target, self.destination.target, needs=tuple(needs(self.destination)),
            attempts=tuple(attempts), unclaimed=tuple(dict.fromkeys(a.dtype for a in attempts if not a.claimed)),
            names=names,
            missing=tuple(special.special_names(self.harness, asked, dtypes, self.source, self.destination)),
            layouts=tuple(dict.fromkeys(special.layouts(pairs))),
            lint=tuple(self._lint(call)),
            silent=(*self._precision(pairs), *special.silent(pairs, dtypes, self.source, self.destination)),
            choices=tuple(choices), file=launches[0].file, notes=tuple(notes),
        )  # fmt: skip
        if self.destination.target.evidence is Evidence.NONE:
            return replace(report, notes=(*notes, self.destination.target.why))
        return judged(report) if attempts else report

    def _tuned(self, launch: Launched, here: Observation | None, attempt: Attempt) -> Attempt:
        """Return the attempt with a further configuration of its tuner, where the first that compiles spills.

        A tuner times all of them, and takes one that does not.
        """
        if attempt.outcome is Outcome.PASS and attempt.spills:
            for call in launch.calls[1 : 1 + self.request.most]:
                further = self._attempt(replace(launch, calls=(call,)), here, self._run(launch, call))
                if further.moves:
                    return replace(further, blocks_from="a configuration of its tuner")
        return attempt

    def _attempt(self, launch: Launched, here: Observation | None, there: Observation) -> Attempt:
        spills = [max((r.spills or 0 for r in o.resources), default=0) if o else 0 for o in (there, here)]
        target = self.destination.target
        return Attempt(
            launch.dtype, launch.sample, tiles(launch.calls[0]), "recorded",
            here.outcome if here else Outcome.UNAVAILABLE, there.outcome, there.evidence,
            self.destination.adapter.claims(target.id, launch.dtype),
            spills[0] - spills[1] if spills[0] - spills[1] >= SPILLS else 0,
            (there.detail.splitlines() or [""])[0], there.line,
            advice.advise(there.outcome, there.detail) if there.outcome is not Outcome.PASS else "",
        )  # fmt: skip

    # ------------------------------------------------------------------------------------------------ smaller blocks

    def _choice(self, launch: Launched, attempt: Attempt) -> Choice:
        """Return what fits of the launch's own blocks made smaller."""
        call, target = launch.calls[0], self.destination.target
        own = tiles(call)
        place = f"{attempt.line}: " if attempt.line else ""
        why = f"{place}{launch.sample}: {attempt.detail.rstrip('.')}" + (
            f": {attempt.advice}" if attempt.advice else ""
        )
        if attempt.outcome is Outcome.PASS:  # it spills: slower, and no change is needed for it
            why = ""
        if len(launch.calls) > 1 or not own or not self.request.most:
            return Choice((launch.dtype,), why=why)
        space = {n: _smaller(n, v) for n, v in own.items()}
        trials = [
            Trial(blocks, self._run(launch, with_tiles(call, blocks)))
            for blocks in neighbours(space, own, own, self.request.most) if blocks != own
        ]  # fmt: skip
        ranked = tuning.rank(trials, self.destination.limits.unit_warps)
        failed = sum(t.observation.outcome is not Outcome.PASS for t in trials)
        found = f"search without hardware, Triton {target.versions.get('triton', '')}"
        choice = Choice((launch.dtype,), ranked=tuple(_ranked(t) for t in ranked[:5]), tried=len(trials), failed=failed)
        if not ranked:
            return replace(choice, found=found, why=why)
        best, words = self._interpreted(launch, [t.blocks for t in ranked[:INTERPRETED]])
        return replace(choice, found=found, blocks=dict(best), interpreted=words)

    def _interpreted(self, launch: Launched, several: Sequence[Mapping[str, int]]) -> tuple[Mapping[str, int], str]:
        """Return the first blocks that give what the recorded ones give, else the first; and what was found of them."""
        call = launch.calls[0]
        target = next((t for t in self.harness.catalogue.targets if t.evidence is Evidence.INTERPRETED), None)
        if target is None or not small(launch):
            why = "no interpreter is here" if target is None else f"its tensors take over {MOST_BYTES >> 20} MiB"
            return several[0], f"not interpreted: {why}"
        if min((g.programs for g in call.grids), default=0) > MOST_PROGRAMS:
            return several[0], f"not interpreted: it has over {MOST_PROGRAMS} programs"
        said = ""
        for blocks in several:
            for grid in regrid.grids(call, tiles(call), blocks):
                seen = self._beside(launch, replace(with_tiles(call, blocks), grids=(Grid(grid),)), target)
                if seen.outcome is Outcome.PASS:
                    return blocks, f"gives what the recorded blocks give, on drawn values with grid {grid}"
                why = (seen.detail.splitlines() or [""])[0]
                if seen.outcome is Outcome.UNAVAILABLE:
                    return several[0], f"not interpreted: {why.removeprefix('not interpreted: ')}"
                said = said or f"grid {grid}: {seen.outcome}: {why}"
        return several[0], f"not shown to be right: with no grid that could be guessed as the recorded blocks ({said})"

    def _beside(self, launch: Launched, call: Call, target: Target) -> Observation:
        """Interpret a launch with other blocks, and compare it with the recorded one."""
        made = replace(launch, calls=(call,))
        return observe(self.harness, made, target, self.recording, against=launch.calls[0])

    def _run(self, launch: Launched, call: Call) -> Observation:
        made = observe(self.harness, replace(launch, calls=(call,)), self.destination.target, self.recording)
        if made.outcome is Outcome.HARNESS_ERROR:
            raise RuntimeError(f"{made.cell.id}: {made.detail}")
        return made

    # --------------------------------------------------------------------------------------------------- what else

    def _lint(self, call: Call) -> Iterator[Fault]:
        path = Path(call.file)
        if path.is_file():
            lines = _span(path, call)
            for fault in special.lint([path], self.source, self.destination, path.parent):
                number = int(fault.line.rpartition(":")[2] or 0)
                if number in lines:
                    yield fault

    def _precision(self, pairs: Sequence[Pair]) -> Iterator[Fault]:
        """Products of float32 whose inputs one side rounds, by their instruction."""
        for pair in pairs:
            for a, b in zip(pair.source, pair.destination, strict=False):
                here, there = (precision_of(r.instruction) for r in (a, b))
                if pair.dtype == "float32" and a.instruction and b.instruction and here != there:
                    message = f"{a.made.kernel}: a product of float32 is computed in {here} here and {there} there"
                    yield Fault("dot-precision", message, Seen.ASSEMBLY, "", (self.destination.target.id,))


def _readings(launch: Launched, observation: Observation | None) -> tuple[Reading, ...]:
    """Return what the resources of a compiled launch say; layouts and denormals are not among them."""
    options = {WARPS: DEFAULT_WARPS, STAGES: 0, **launch.calls[0].options}
    return tuple(
        Reading(
            Made(r.kernel, spills=r.spills or 0), warps=int(options[WARPS]), stages=int(options[STAGES]),
            shared=r.shared or 0, instruction=r.matrix,
        )
        for r in (observation.resources if observation is not None else ())
    )  # fmt: skip


def _smaller(name: str, value: int) -> tuple[int, ...]:
    if name == STAGES:
        return tuple(range(value, 0, -1))
    least = 1 if name == WARPS else SMALLEST
    return tuple(v for v in (value, value // 2, value // 4) if v >= least)


def _names(call: Call) -> tuple[str, ...]:
    path = Path(call.file)
    try:
        return uses(path.read_text(encoding="utf-8"), call.kernel.rpartition(".")[2]).names
    except (OSError, LookupError, SyntaxError, UnicodeDecodeError):  # generated, or made in another way
        return ()


def _span(path: Path, call: Call) -> range:
    """Return the lines of the kernel: findings about others of its file are theirs."""
    lines = path.read_text(encoding="utf-8").splitlines()
    body = range(call.line, len(lines))
    ends = (i for i in body if lines[i].strip() and not lines[i][0].isspace() and not lines[i].startswith((")", "#")))
    return range(call.line, next(ends, len(lines)) + 1)


def _ranked(trial: Trial) -> Ranked:
    resources = trial.observation.resources
    return Ranked(
        dict(trial.blocks), None, max((r.registers or 0 for r in resources), default=0),
        max((r.shared or 0 for r in resources), default=0), trial.occupancy, trial.matrix,
    )  # fmt: skip
