"""The kit from the outside: every check of one adapter, on each of its targets, through runners."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from portability import environments
from portability.backend import Backend
from portability.conformance import static
from portability.conformance.model import CHECKS, Result, Verdict, result
from portability.harness import Harness
from portability.matrix import Matrix, MatrixError
from portability.model import DEFAULT_ENVIRONMENT, Cell, Evidence, Outcome, Target, from_json, to_json
from portability.pool import RunnerDiedError, RunnerTimedOutError, temporary_folder
from portability.tomltable import nearest

CASES = "portability.conformance.cases"
WIDEN, SAMPLE, BLOCKS = "conformance_widen", "257", {"BLOCK": 256, "num_warps": 4}
INSIDE = ("opening", "recording", "synchronization", "timing", "memory")
REFUSALS = (Outcome.COMPILE_ERROR, Outcome.UNSUPPORTED, Outcome.LAUNCH_ERROR)  # by name, and before anything ran
LIMIT = 300.0  # seconds for one check

Say = Callable[[str], None]


def check_backend(
    name: str, targets: Sequence[str] = (), matrix: Matrix | None = None, say: Say = lambda _: None
) -> list[Result]:
    """Return every check of the adapter `name`; `targets` names some of its targets, empty all of them.

    Adapters are found as ever: bundled, by entry point, or named in `matrix` (default: that of the project here).
    Raises `MatrixError` with the choices for a name that is none.
    """
    from portability.conformance.observe import project

    matrix = matrix if matrix is not None else project()
    with temporary_folder() as folder:
        harness = Harness(replace(matrix, kernels=(*matrix.kernels, CASES)), folder, Path.cwd(), {"timing": False})
        try:
            if name not in harness.adapters:
                raise MatrixError(f"no backend {name!r}; {nearest(name, harness.adapters)}")
            say(f"{name}: detection")
            detection = detect(harness, harness.adapters[name])  # first: a runner that was asked before has its answer
            return list(_Kit(harness, harness.adapters[name], targets, detection, say).results())
        finally:
            harness.close()


def detect(harness: Harness, adapter: Backend) -> Result:
    """Return what the adapter's status() does to a process that has asked nobody yet, in its own environment."""
    here = adapter.environment in environments.installed() or adapter.environment in harness.matrix.environments
    return ask(harness, adapter, adapter.environment if here else DEFAULT_ENVIRONMENT, "detection", None)


def ask(harness: Harness, adapter: Backend, environment: str, check: str, target: Target | None) -> Result:
    """Return what a runner says of one check; one that ends its process fails."""
    request: dict[str, Any] = {"op": "conformance", "backend": adapter.name, "check": check}
    request |= {"target": to_json(target)} if target is not None else {}
    name = target.id if target is not None else ""
    try:
        reply = harness.ask(environment, request, LIMIT)
    except (RunnerDiedError, RunnerTimedOutError) as error:
        return Result(check, Verdict.FAIL, str(error).split("\n")[0], name)
    if "failure" in reply:
        return Result(check, Verdict.FAIL, reply["failure"], name)
    return from_json(Result, reply["results"][0])


class _Kit:
    """One adapter under examination."""

    def __init__(self, harness: Harness, adapter: Backend, targets: Sequence[str], detection: Result, say: Say) -> None:
        self.harness, self.adapter, self.detection, self.say = harness, adapter, detection, say
        mine = [t for t in harness.catalogue.targets if t.backend == adapter.name]
        for wanted in targets:
            if wanted not in {t.id for t in mine}:
                raise MatrixError(
                    f"--target: {wanted!r} is not of {adapter.name}; {nearest(wanted, (t.id for t in mine))}"
                )
        self.targets = [t for t in mine if not targets or t.id in targets]
        widen = harness.catalogue.case(WIDEN)
        self.dtypes = frozenset(widen.dtypes)

    def results(self) -> Iterator[Result]:
        """Make the checks, in the order of `CHECKS`."""
        makers: Mapping[str, Callable[[], Iterator[Result]]] = {
            "contract": lambda: iter([static.contract(self.adapter, self.dtypes)]),
            "detection": lambda: iter([self.detection]),
            "crossing": lambda: iter([static.crossing(self.adapter, self.targets)]),
            "limits": lambda: (static.limits(self.adapter, t.id) for t in self.targets),
            "blocks": self._blocks,
            "claimed": lambda: (self._claims(t, claimed=True) for t in self.targets),
            "unclaimed": lambda: (self._claims(t, claimed=False) for t in self.targets),
            **{name: lambda name=name: (self._inside(name, t) for t in self.targets) for name in INSIDE},  # type: ignore[misc]
        }
        for name in CHECKS:
            self.say(f"{self.adapter.name}: {name}")
            yield from makers[name]()

    # ------------------------------------------------------------------------------------------- through runners

    def _inside(self, check: str, target: Target) -> Result:
        if target.evidence is Evidence.NONE:
            return Result(check, Verdict.NOT_HERE, _why(target), target.id)
        return ask(self.harness, self.adapter, target.environment, check, target)

    # -------------------------------------------------------------------------------------------------- dtypes

    def _claims(self, target: Target, claimed: bool) -> Result:
        check = "claimed" if claimed else "unclaimed"
        if target.evidence is Evidence.NONE:
            return Result(check, Verdict.NOT_HERE, _why(target), target.id)
        dtypes = [d for d in sorted(self.dtypes) if self.adapter.claims(target.id, d) is claimed]
        if not dtypes:
            return Result(check, Verdict.PASS if not claimed else Verdict.FAIL, "there is none", target.id)
        problems = []
        for dtype in dtypes:
            cell = Cell(WIDEN, dtype, SAMPLE, target.id, target.environment)
            observed = self.harness.run_with(cell, target, BLOCKS, "conformance")
            if observed.outcome not in ((Outcome.PASS,) if claimed else REFUSALS):
                first = (observed.detail.splitlines() or [""])[0]
                works = observed.outcome is Outcome.PASS
                problems.append(
                    f"{dtype} works, and is not claimed" if works else f"{dtype}: {observed.outcome}: {first}"
                )
        words = "work" if claimed else "are refused"
        return result(check, problems, f"{len(dtypes)} {words}, {target.evidence}: {', '.join(dtypes)}", target.id)

    def _blocks(self) -> Iterator[Result]:
        kernels = [c for c in self.harness.catalogue.cases if not c.name.startswith("conformance_")]
        yield static.blocks(self.adapter, kernels, self.dtypes)


def _why(target: Target) -> str:
    return f"{target.why}; {target.remedy}" if target.remedy else target.why
