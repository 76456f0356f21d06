"""A recorded launch on one target, in a runner: the kernel found again, launched on stand-ins, judged like any cell.

An autotuned launch is one cell with all its configurations: on a device the tuner drops those that fail and takes one
of the others, so it works where one of them does. They are tried in order until `configs` of them pass.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from portability import backend as backends
from portability.backend import Backend, Session
from portability.checks.cell import Watched
from portability.checks.pretend import pretend
from portability.ghost import driven
from portability.kernel import Blocks, KernelCase, Sample, relative
from portability.launch import warn_of_configurations
from portability.model import Cell, Evidence, Finding, Observation, Outcome, Target, from_json, to_json
from portability.record.arguments import UnknownArgumentError, decode, pointer
from portability.record.cases import MOST_PROGRAMS
from portability.record.describing import digest
from portability.record.model import Call, Recording
from portability.record.nowhere import adapter_of
from portability.record.rebuild import NotRebuiltError, extend_paths, rebuild
from portability.run import Options, run_cell

MEETINGS = (Outcome.RACE, Outcome.NONDETERMINISTIC)  # of programs, at one element
DROPPED = ("OutOfResources", "CompileTimeAssertionFailure", "PTXASError")  # what Triton's tuner takes for "slow"


def replay(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the observation of `request["calls"]` (one launch, or the configurations of one) on its target.

    Modules are imported for one target, so that a process that goes on to another is ended first: by the `last` launch,
    or by a request of none.
    """
    if not request["calls"]:
        return {"last": True}
    cell, options = from_json(Cell, request["cell"]), Options(timing=False, root=request["root"])
    return {"observation": to_json(asked(request).observe(cell, options)), "last": request.get("last", False)}


def asked(request: Mapping[str, Any]) -> Replay:
    """Return what is asked for, where modules are found as in the recorded program."""
    target, recording = from_json(Target, request["target"]), from_json(Recording, request["recording"])
    extend_paths(recording.paths)
    os.environ.update({n: v for n, v in recording.variables.items() if not _elsewhere(v)})
    adapter = backends.discover(tuple(request.get("backends", ())))[target.backend]
    calls = [from_json(Call, data) for data in request["calls"]]
    against = from_json(Call, request["against"]) if request.get("against") else None
    return Replay(calls, adapter, target, request.get("configs", 1), recording.target, against)


def _elsewhere(value: str) -> bool:
    """Return whether a variable's value is a path of the machine that recorded it, and is none here."""
    return Path(value).is_absolute() and not Path(value).exists()


@dataclass
class Replay:
    """One recorded launch on one target. `configs` 0 tries every configuration.

    Where it is interpreted, it must give what `against` gives: the launch that it was made of by other blocks.
    """

    calls: Sequence[Call]
    adapter: Backend
    target: Target
    configs: int = 1
    told: str = ""  # the target that the recorded program was told of
    against: Call | None = None

    def __post_init__(self) -> None:
        self._session: Session | None = None
        self._function: Any = None
        self._notes: list[Finding] = []
        self._lost = ""
        self._distinct = False  # whether integers differ

    def observe(self, cell: Cell, options: Options) -> Observation:
        """Return what came of it. What cannot be had again or interpreted is unavailable: no fault of the kernel's."""
        seen = self._observe(cell, options)
        if not self.target.evidence.executes:
            return seen
        from portability.interpret.memory import NOWHERE
        from portability.record.interpreted import indexed, named

        seen = replace(seen, detail=named(self.calls[0], seen.detail))
        if NOWHERE in seen.detail and indexed(self.calls[0]):
            return _unavailable(
                seen, "not interpreted: it takes addresses out of a tensor, whose values were not recorded"
            )
        if seen.outcome in MEETINGS and indexed(self.calls[0]):
            self._distinct = True
            return _met(seen, self._observe(cell, options))
        return seen

    def _observe(self, cell: Cell, options: Options) -> Observation:
        watched = Watched(self.adapter, self.opened)
        seen = run_cell(cell, self.case(cell), cast(Backend, watched), self.target, Blocks(), "", options)
        why = self._lost or (seen.detail if seen.outcome is Outcome.UNSUPPORTED else "")
        if why:
            return _unavailable(seen, why)
        return self._placed(replace(seen, warnings=(*seen.warnings, *self._notes)), Path(options.root))

    def _placed(self, seen: Observation, root: Path) -> Observation:
        """Name the kernel's file from its package on, and as it was recorded where it was written again."""
        here = self._function.fn.__code__.co_filename if self._function is not None else self.calls[0].file
        short, whole = relative(here, root), self.calls[0].short_file
        warnings = tuple(
            replace(w, line=w.line.replace(short, whole), message=w.message.replace(short, whole))
            for w in seen.warnings
        )
        detail, line = seen.detail.replace(short, whole), seen.line.replace(short, whole)
        return replace(seen, line=line, detail=detail, warnings=warnings)

    def case(self, cell: Cell) -> KernelCase:
        """Return the launch as a kernel case, whose operator is called in a session that `opened` was told of."""
        if self.target.evidence.executes:
            from portability.record.interpreted import case_of

            against = self.against
            other = None if against is None else lambda tensor: self._launch(against, tensor)
            return case_of(
                cell, self.calls[0], lambda tensor: self._launch(self.calls[0], tensor), other, self._distinct
            )
        return KernelCase(
            name=cell.kernel, operator=self._compile, reference=lambda: (), dtypes=[cell.dtype],
            samples=[Sample(cell.sample, lambda _: ())],
        )  # fmt: skip

    def opened(self, session: Session) -> None:
        """Launch in this session."""
        self._session = session
        if self.target.evidence.executes:
            session.sample_grid = MOST_PROGRAMS  # type: ignore[attr-defined]  # of the interpreter's session

    def _compile(self, blocks: Blocks | None = None) -> tuple[()]:
        assert self._session is not None, "an operator is called in an opened target"
        passed, last = 0, None
        for call in self.calls:
            try:
                self._launch(call, pointer)
                passed += 1
            except Exception as error:
                if not call.config or type(error).__name__ not in DROPPED:
                    raise
                last = error
            if passed and passed == self.configs:
                break
        warn_of_configurations(self._session)
        if not passed and last is not None:
            raise last
        return ()

    def _launch(self, call: Call, tensor: Callable[[Mapping[str, Any]], Any]) -> None:
        assert self._session is not None
        function = self._rebuilt()
        known = len(self._session.launches)
        try:
            given = {n: decode(n, v, tensor) for n, v in call.arguments.items()}
            options = {n: decode(n, v) for n, v in call.options.items()}
            if strangers := sorted(set(given) - set(function.signature.parameters)):
                raise NotRebuiltError(f"{call.kernel} has no argument {', '.join(strangers)} any more")
        except (UnknownArgumentError, NotRebuiltError) as error:
            self._lost = f"not rebuilt: {error}"
            raise
        positional, named = _split(function, given)
        try:
            function.run(*positional, grid=self._grid(call), warmup=False, **named, **options)
        finally:
            for launch in self._session.launches[known:]:
                launch.config = call.config

    def _grid(self, call: Call) -> tuple[int, ...]:
        """Return the largest grid, since what a target refuses it refuses there; to be run, that of the arguments."""
        choose = min if self.target.evidence.executes else max
        return choose(call.grids, key=lambda g: g.programs).size if call.grids else (1,)

    def _rebuilt(self) -> Any:
        if self._function is not None:
            return self._function
        call = self.calls[0]
        try:
            with self._named_device():
                self._function = rebuild(call)
        except NotRebuiltError as error:
            self._lost = str(error)
            raise
        if digest(self._function) != call.digest:
            note = f"{call.kernel}: its source is not the one that was recorded"
            self._notes.append(Finding("source-changed", note, f"{call.short_file}:{call.line}"))
        return self._function

    @contextlib.contextmanager
    def _named_device(self) -> Iterator[None]:
        """A module may ask for its device while it is imported; to be interpreted, it is told of the recorded one."""
        if not self.target.evidence.executes:
            with pretend(self.adapter, self.target.id):
                yield
        elif not self.told:
            yield
        else:
            adapter = adapter_of(self.told)
            with driven(adapter.gpu_target(self.told), adapter.limits_of(self.told)), pretend(adapter, self.told):
                yield


def _unavailable(seen: Observation, why: str) -> Observation:
    return replace(seen, evidence=Evidence.NONE, outcome=Outcome.UNAVAILABLE, stage="open", detail=why)


def _met(zero: Observation, distinct: Observation) -> Observation:
    """Return what is to be said of programs that meet where integers are zero, by what they do where these differ."""
    if distinct.outcome in MEETINGS:
        return zero
    if distinct.outcome is Outcome.PASS:
        note = Finding("equal-indices", f"with integers that are all 0: {zero.detail.splitlines()[0]}", zero.line)
        return replace(distinct, warnings=(*distinct.warnings, note))
    return _unavailable(zero, "not interpreted: whether programs meet depends on integers, which were not recorded")


def _split(function: Any, given: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """Return what is passed by place and what by name: `*args` of a kernel can only follow what is before it."""
    positional: list[Any] = []
    named = dict(given)
    variadic = next((n for n, p in function.signature.parameters.items() if p.kind is p.VAR_POSITIONAL), None)
    if variadic is None:
        return positional, named
    for name in function.signature.parameters:
        value = named.pop(name, ())
        if name == variadic:
            return [*positional, *value], named
        positional.append(value)
    return positional, named
