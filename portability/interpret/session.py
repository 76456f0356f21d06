"""A session of the interpreter: its settings, its launches, and what of Triton is replaced while it is open."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from triton import knobs

from portability.backend import Launch, Problem, Session, axes_of
from portability.interpret.access import Access
from portability.interpret.arguments import Arguments
from portability.interpret.autotune import tuned
from portability.interpret.builder import CheckedBuilder
from portability.interpret.internals import Autotuner, InterpreterError, JITFunction
from portability.interpret.language import Language
from portability.interpret.report import Report, SpinTimeout, Unsupported, raised_at, written
from portability.interpret.rewrite import definition_line
from portability.interpret.targets import Targets
from portability.interpret.trace import Trace
from portability.interpret.variants import FLUSHED, FLUSHED_PRODUCT, FLUSHED_ROOT, FUSED, QUOTIENT, ROOT, WORDS
from portability.model import Outcome, Target

BITES = {
    FUSED: Targets.fusing, FLUSHED: Targets.of_gpus, FLUSHED_ROOT: Targets.of_gpus, FLUSHED_PRODUCT: Targets.of_mi200,
    QUOTIENT: Targets.of_nvidia, ROOT: Targets.of_gpus,
}  # fmt: skip
MESSAGE = 400  # characters of an error: the front end writes out whole tensors


class KernelError(InterpreterError):  # type: ignore[misc]
    """The kernel raised: what the front end refuses, or Python did. `line` is the kernel's own, "file:line"."""

    def __init__(self, message: str, line: str) -> None:
        super().__init__(f"{message} ({line})" if line else message)
        self.line = line


class Interpretation(Session):
    """An opened interpreter.

    program_seconds  the most that one program may spend in `while` loops before it is a `SpinTimeout`
    configs          which configurations an autotuned kernel runs with: the "first" of those left after pruning, or
                     "all" in turn, as tuning does on a device, before the first runs for good
    sample_grid      the most programs of a launch that are run; the others are left out and a warning says so
    trace            whether races are explained
    launching        called with the arguments of each launch, by name, before it
    """

    ordered = True

    def __init__(self, target: Target) -> None:
        super().__init__(target)
        self.program_seconds = 10.0
        self.configs = "first"
        self.sample_grid: int | None = None
        self.report = Report(self.problems, self.warnings)
        self.access = Access(self.report)
        self.targets = Targets(target.id)
        self.builder = CheckedBuilder(self.report, self.access, self.targets)
        self.language = Language(self.builder)
        self.arguments = Arguments(self.access.memory, self.language.semantic)
        self.launching: list[Callable[[Mapping[str, Any]], None]] = []
        self._trace: Trace | None = None
        self.config = ""  # of the launch that autotuning is at
        self._order = 0

    def vary(self, order: int, poison: int) -> None:
        """Prepare the next execution: see `Session.vary`. Also which of two lanes that store to one element wins."""
        self._order = order
        self.access.poison = poison % 2
        self.access.last_wins = order == 0
        self.access.early.on = order > 1
        self.access.leaks.clear()
        self.access.log.entangled = False

    @property
    def entangled(self) -> bool:  # type: ignore[override]  # told by the accesses of an execution
        """Whether a program could have told in which order programs ran: one used atomics, or read what is written."""
        return self.access.log.entangled

    @property
    def passes_nan(self) -> bool:
        """Whether NaN goes through minima and maxima that do not say so."""
        return self.builder.passes_nan

    @passes_nan.setter
    def passes_nan(self, on: bool) -> None:
        self.builder.passes_nan = on

    @property
    def variants(self) -> tuple[str, ...]:
        """What `vary_arithmetic` may be asked for that could have changed something so far."""
        return tuple(v for v in BITES if v in self.builder.concerned)

    def vary_arithmetic(self, variant: str) -> None:
        """Compute as targets may that do otherwise in one thing: see `portability.interpret.variants`."""
        self.builder.variant = variant
        self.builder.changed = {}

    def varied(self) -> tuple[str, str, tuple[str, ...]] | None:
        """Return the line that the variant changed most, what it did there, and on which targets; None if nothing."""
        if not self.builder.changed:
            return None
        worst = max(self.builder.changed, key=lambda place: self.builder.changed[place])
        kind = self.builder.variant
        return written(worst), WORDS[kind], tuple(BITES[kind](self.targets))

    @property
    def trace(self) -> bool:
        """Whether accesses are logged, and a launch whose programs touch one element adds a problem that names them.

        Dear, and meant for the run that explains why outputs differ: a difference is what makes it a fault.
        """
        return self._trace is not None

    @trace.setter
    def trace(self, on: bool) -> None:
        pairs = self.access.log.pairs, self.access.early.pairs
        self._trace = Trace(self.report, self.access.memory, *pairs) if on else None
        self.access.observers = [self._trace.observe] if self._trace else []

    # -------------------------------------------------------------------------------------------------- launch

    def launch(self, jit: Any, args: Sequence[Any], grid: Any, kwargs: dict[str, Any]) -> None:
        """Run every program of a launch. Raises `Unsupported`, `SpinTimeout` or `KernelError`."""
        if jit.is_gluon():
            raise Unsupported(f"{jit.fn.__name__}: Gluon kernels are not interpreted")
        names = [p.name for p in jit.params]
        options = {k: v for k, v in kwargs.items() if k not in names}
        bound = jit.signature.bind(*args, **{k: v for k, v in kwargs.items() if k in names})
        bound.apply_defaults()
        for hook in jit.pre_run_hooks:
            hook(*args, **kwargs)
        shape = axes_of(grid(dict(bound.arguments)) if callable(grid) else grid)
        launch = self._record(jit, bound.arguments, options, shape)
        self.launches.append(launch)
        self.report.kernel, self.report.definition = jit.fn.__name__, (jit.fn.__code__.co_filename, launch.line)
        self.builder.launched(options)
        for code, message, targets in self.targets.refused(launch):
            self.report.warn(code, message, targets)
        for judge in self.launching:
            judge(bound.arguments)
        with self.language.active(), np.errstate(all="ignore"):
            values = self.arguments.converted(jit, bound.arguments)
            self.access.log.clear()
            self.access.early.clear()
            self._run_grid(self.language.function(jit), values, shape)
        found = [*self.access.log.conclude(), *(self._trace.conclude() if self._trace else [])]
        self.problems += [p for p in found if p not in self.problems]

    def _record(self, jit: Any, arguments: dict[str, Any], options: dict[str, Any], grid: tuple[int, ...]) -> Launch:
        constants = {p.name: arguments[p.name] for p in jit.params if p.is_constexpr}
        return Launch(
            kernel=jit.fn.__qualname__,
            file=written((jit.fn.__code__.co_filename, 0)).rpartition(":")[0],
            line=definition_line(jit),
            constants=constants,
            options=options,
            grid=grid,
            num_warps=options.get("num_warps", 4),
            config=self.config,
        )

    def _run_grid(self, function: Any, values: dict[str, Any], grid: tuple[int, ...]) -> None:
        x, y, z = self.builder.grid_dim = (*grid, 1, 1, 1)[:3]
        pending = dict.fromkeys(self._programs(x * y * z))

        def run(program: int) -> None:
            del pending[program]
            self.report.program = self.builder.grid_idx = (program % x, program // x % y, program // (x * y))
            self.language.runtime.earlier = lambda: earlier(program)
            self.run_program(function, values)

        def earlier(waiting: int) -> bool:
            before = min((p for p in pending if p < waiting), default=None)
            if before is None:
                return False
            place, again = self.report.program, self.language.runtime.earlier
            run(before)
            self.report.program = self.builder.grid_idx = place
            self.language.runtime.earlier = again
            self._restart_clock()
            return True

        while pending:
            run(next(iter(pending)))

    def _restart_clock(self) -> None:
        runtime = self.language.runtime
        runtime.seconds, runtime.deadline = self.program_seconds, time.monotonic() + self.program_seconds

    def run_program(self, function: Any, values: dict[str, Any]) -> None:
        """Run one program. Frames further in than this one are the kernel's."""
        self._restart_clock()
        try:
            function(**values)
        except (Unsupported, SpinTimeout):
            raise
        except Exception as error:  # whatever the kernel's own code raises is the kernel's error
            line = written(raised_at(error.__traceback__, self.report.definition))
            words = " ".join(str(error).split())[:MESSAGE]
            raise KernelError(f"{self.report.kernel}: {type(error).__name__}: {words}", line) from error

    def _programs(self, count: int) -> Sequence[int]:
        """The programs to run, in the order of `vary`."""
        chosen: Sequence[int] = range(count)
        if self.sample_grid is not None and count > self.sample_grid:
            chosen = _sample(count, self.sample_grid)
            self.report.warn("sampled-grid", f"{len(chosen)} of {count} programs were run")
        if self._order == 0:
            return chosen
        if self._order == 1:
            return chosen[::-1]
        return [chosen[i] for i in np.random.default_rng(self._order).permutation(len(chosen)).tolist()]

    def undefined(self) -> list[Problem]:
        """Return where undefined lanes were stored in the last execution: the load and the store, once each."""
        found = {(leak.place, leak.stored) for leak in self.access.leaks}
        return [
            Problem(
                Outcome.UNDEFINED_VALUE, "undefined-lanes",
                f"lanes that {written(load)} leaves undefined (load without other, gather of none) are stored here",
                written(store),
            )
            for load, store in sorted(found)
        ]  # fmt: skip


def _sample(count: int, most: int) -> list[int]:
    """The first, the last and evenly spread programs between."""
    return sorted({round(i * (count - 1) / max(1, most - 1)) for i in range(most)})


@contextlib.contextmanager
def opened(target: Target) -> Iterator[Interpretation]:
    """Interpret every launch on CPU tensors until the end of the context, then leave Triton as it was.

    Raises `RuntimeError` where Triton was told to interpret by itself.
    """
    if knobs.runtime.interpret:
        raise RuntimeError("TRITON_INTERPRET is set: Triton's own interpreter would run the kernels. Unset it")
    session = Interpretation(target)
    before = JITFunction.run, JITFunction.__call__, Autotuner.run

    def run(self: Any, *args: Any, grid: Any, warmup: bool = False, **kwargs: Any) -> None:
        if not warmup:  # there is nothing to compile ahead of time
            session.launch(self, args, grid, kwargs)

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not session.language.running:
            return before[1](self, *args, **kwargs)  # says that this is no place to call a jitted function
        return session.language.function(self)(*args, **kwargs)

    JITFunction.run, JITFunction.__call__ = run, call
    Autotuner.run = lambda self, *args, **kwargs: tuned(session, self, args, kwargs)
    try:
        yield session
    finally:
        JITFunction.run, JITFunction.__call__, Autotuner.run = before
