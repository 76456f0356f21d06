"""A recorded launch on one target, in a runner: the kernel found again, launched on stand-ins, judged like any cell.

An autotuned launch is one cell with all its configurations: on a device the tuner drops those that fail and takes one
of the others, so it works where one of them does. They are tried in order until `configs` of them pass.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from portability import backend as backends
from portability.backend import Backend, Session
from portability.checks.cell import Watched
from portability.kernel import Blocks, KernelCase, Sample
from portability.launch import warn_of_configurations
from portability.model import Cell, Finding, Observation, Target, from_json, to_json
from portability.record.arguments import UnknownArgumentError, decode
from portability.record.model import Call
from portability.record.rebuild import NotRebuiltError, extend_paths, rebuild
from portability.run import Options, run_cell

DROPPED = ("OutOfResources", "CompileTimeAssertionFailure", "PTXASError")  # what Triton's tuner takes for "slow"


class Unsupported(NotRebuiltError):  # `outcomes` knows by this name what cannot be done
    """A recorded launch that cannot be made again."""


def replay(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the observation of `request["calls"]` (one launch, or the configurations of one) on its target."""
    target, cell = from_json(Target, request["target"]), from_json(Cell, request["cell"])
    calls = [from_json(Call, data) for data in request["calls"]]
    extend_paths(request["paths"])
    adapter = backends.discover(tuple(request.get("backends", ())))[target.backend]
    made = Replay(calls, adapter, target, request["configs"]).observe(cell, Options(timing=False, root=request["root"]))
    return {"observation": to_json(made), "last": request.get("last", False)}


@dataclass
class Replay:
    """One recorded launch on one target. `configs` 0 tries every configuration."""

    calls: Sequence[Call]
    adapter: Backend
    target: Target
    configs: int = 1

    def observe(self, cell: Cell, options: Options) -> Observation:
        """Return what came of it."""
        self._session: Session | None = None
        self._notes: list[Finding] = []
        watched = Watched(self.adapter, self._opened)
        case = KernelCase(
            name=cell.kernel, operator=self._operator, reference=lambda: (), dtypes=[cell.dtype],
            samples=[Sample(cell.sample, lambda _: ())],
        )  # fmt: skip
        seen = run_cell(cell, case, cast(Backend, watched), self.target, Blocks(), "", options)
        return replace(seen, warnings=(*seen.warnings, *self._notes))

    def _opened(self, session: Session) -> None:
        self._session = session

    def _operator(self, blocks: Blocks | None = None) -> tuple[()]:
        assert self._session is not None, "an operator is called in an opened target"
        with self._named_device():
            function = self._rebuilt()
        passed, last = 0, None
        for call in self.calls:
            try:
                self._launch(function, call)
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

    def _launch(self, function: Any, call: Call) -> None:
        assert self._session is not None
        known = len(self._session.launches)
        names = list(function.signature.parameters)
        try:
            given = {n: decode(n, v) for n, v in call.arguments.items()}
            options = {n: decode(n, v) for n, v in call.options.items()}
        except UnknownArgumentError as error:
            raise Unsupported(f"not rebuilt: {error}") from None
        if strangers := sorted(set(given) - set(names)):
            raise Unsupported(f"not rebuilt: {call.kernel} has no argument {', '.join(strangers)} any more")
        positional, named = _split(function, given)
        try:
            function.run(*positional, grid=_largest(call), warmup=False, **named, **options)
        finally:
            for launch in self._session.launches[known:]:
                launch.config = call.config

    def _rebuilt(self) -> Any:
        call = self.calls[0]
        try:
            function = rebuild(call)
        except NotRebuiltError as error:
            raise Unsupported(str(error)) from None
        from portability.record.describing import digest

        if digest(function) != call.digest:
            note = f"{call.kernel}: its source is not the one that was recorded"
            self._notes.append(Finding("source-changed", note, f"{Path(call.file).name}:{call.line}"))
        return function

    @contextlib.contextmanager
    def _named_device(self) -> Iterator[None]:
        """A module may ask for its device while it is imported."""
        from portability.checks.pretend import pretend

        if self.adapter.device == "cpu" or self.target.evidence.executes:
            yield
            return
        with pretend(self.adapter, self.target.id):
            yield


def _largest(call: Call) -> tuple[int, ...]:
    """Return the largest grid: what a target refuses, it refuses there."""
    return max(call.grids, key=lambda g: g.programs).size if call.grids else (1,)


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
