"""The record of a program's launches, as it goes on.

`JITFunction.run` and `Autotuner` are wrapped, nothing else: what is launched, with what and in which order stays as it
is. A launch whose binary and grid were seen before costs one look into a dictionary; only a new one is described.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from portability.checks.collect import definition
from portability.launch import describe
from portability.record import inductor
from portability.record.arguments import encode
from portability.record.model import Call, Grid, Recording

LOCAL = "<locals>"  # in the qualified name of what is defined within a function


@dataclass
class Entry:
    """One distinct launch, while it is counted."""

    call: Call
    compiled: Any  # kept, so that its id stays its own
    grids: dict[tuple[tuple[int, ...], str], int] = field(default_factory=dict)
    smallest: int = 2**63


class Recorder:
    """Collects launches between `start` and `stop`."""

    def __init__(self, target: str, ran: bool, program: tuple[str, ...] = ()) -> None:
        """`target` is what the program is told of or runs on; `ran` says which."""
        self.target, self.ran, self.program = target, ran, program
        self.entries: dict[int, Entry] = {}
        # By Inductor's kernel and the sizes it is given: a launch a configuration.
        self.generated: dict[tuple[int, tuple[int, ...]], list[tuple[Entry, tuple[int, ...]]]] = {}
        self.failed: dict[str, Call] = {}
        self.unnamed: dict[str, None] = {}
        self.test = ""  # the test that runs, where a pytest plugin says so
        self._here = threading.local()  # the configuration that is being tried
        self._exit = contextlib.ExitStack()

    def start(self) -> None:
        """Begin to record."""
        self._exit.enter_context(self._wrapped())
        self._exit.enter_context(inductor.noted(self.note_generated))

    def stop(self) -> None:
        """Leave everything as it was."""
        self._exit.close()

    def recording(self) -> Recording:
        """Return what was recorded so far."""
        entries = [*self.entries.values(), *(e for some in self.generated.values() for e, _ in some)]
        calls = [*(e.call for e in entries), *self.failed.values()]
        counts = [*(e.grids for e in entries), *({} for _ in self.failed)]
        tests: dict[str, int] = {}
        made = [_with_grids(call, grids, tests) for call, grids in zip(calls, counts, strict=True)]
        paths = tuple(dict.fromkeys(os.path.abspath(p) for p in sys.path))
        return Recording(
            self.target, self.ran, self.program, versions(), paths, tuple(tests), tuple(made), tuple(self.unnamed)
        )

    # ------------------------------------------------------------------------------------------ what is wrapped

    @contextlib.contextmanager
    def _wrapped(self) -> Iterator[None]:
        from triton.runtime.autotuner import Autotuner
        from triton.runtime.jit import JITFunction

        plain_run, plain_bench = JITFunction.run, Autotuner._bench
        note, here = self.note, self._here

        def run(kernel: Any, *args: Any, grid: Any, warmup: bool = False, **kwargs: Any) -> Any:
            size: Any = grid
            if callable(grid):
                asked = grid

                def grid(meta: Any) -> Any:
                    nonlocal size
                    size = asked(meta)
                    return size

            try:
                compiled = plain_run(kernel, *args, grid=grid, warmup=warmup, **kwargs)
            except Exception as error:
                self.note_failure(kernel, args, kwargs, error)
                raise
            if not warmup:
                note(compiled, size, kernel, args, kwargs)
            return compiled

        def bench(tuner: Any, *args: Any, config: Any, **meta: Any) -> Any:
            here.config, here.tuning = config, (tuner, args, meta)
            try:
                return plain_bench(tuner, *args, config=config, **meta)
            finally:
                here.config = here.tuning = None

        JITFunction.run, Autotuner._bench = run, bench
        try:
            yield
        finally:
            JITFunction.run, Autotuner._bench = plain_run, plain_bench

    # ------------------------------------------------------------------------------------------------- the notes

    def note(self, compiled: Any, grid: Any, kernel: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """Count a launch, and describe it where it is new."""
        entry = self.entries.get(id(compiled))
        if entry is None:
            if compiled is None:  # a hook of the program took the launch over
                return
            entry = self.entries[id(compiled)] = Entry(self._call(kernel, args, kwargs, compiled), compiled)
        if not self._counted(entry, grid):
            return
        programs = Grid(tuple(int(n) for n in grid)).programs
        if programs < entry.smallest:  # its arguments are the smallest to run it with
            if entry.smallest < 2**63:
                entry.call = self._call(kernel, args, kwargs, compiled)
            entry.smallest = programs

    def note_generated(self, generated: Any, args: Sequence[Any]) -> None:
        """Count a launch of a kernel that Inductor generated, once for each configuration that it has."""
        key = id(generated), tuple([a for a in args if a.__class__ is int])  # sizes, where they vary
        entries = self.generated.get(key)
        if entries is None:
            entries = self.generated[key] = [*self._generated(generated, args)]
        for entry, grid in entries:
            self._counted(entry, grid)

    def _generated(self, generated: Any, args: Sequence[Any]) -> Iterator[tuple[Entry, tuple[int, ...]]]:
        source, known = inductor.compiled_from(generated), list(inductor.described(generated, args))
        for given, grid, config in known:
            call = self._call(generated.fn, (), given, source)
            call = replace(
                call, origin="inductor", source=inductor.source_of(generated), config=str(config) if known[1:] else "",
                tuning=call.digest[:12] if known[1:] else "",
            )  # fmt: skip
            yield Entry(call, generated), grid

    def _counted(self, entry: Entry, grid: Any) -> bool:
        """Count a launch; whether it is the first of its grid and test."""
        key = (tuple(grid), self.test)
        count = entry.grids.get(key)
        entry.grids[key] = 1 if count is None else count + 1
        return count is None

    def note_failure(self, kernel: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], error: Exception) -> None:
        """Describe a launch that raised: there is no binary to know it by."""
        try:
            call = self._call(kernel, args, kwargs, None, f"{type(error).__name__}: {error}"[:2000])
        except (TypeError, AttributeError, OSError) as lack:  # no kernel with source and signature: say which
            self.unnamed[f"{kernel!r}: {error} ({lack})"] = None
            return
        self.failed.setdefault(call.identity, call)

    def _call(
        self, kernel: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], compiled: Any, error: str = ""
    ) -> Call:
        config = getattr(self._here, "config", None)
        launch = describe(kernel, kwargs, str(config) if config is not None else "")
        source = getattr(compiled, "src", None)
        names = kernel.arg_names

        def named(values: Mapping[Any, Any]) -> dict[str, str]:
            return {names[k[0]] if len(k) == 1 else str(k): str(v) for k, v in values.items() if v != []}

        return Call(
            kernel=launch.kernel,
            module=kernel.fn.__module__,
            file=os.path.abspath(launch.file),
            line=definition(launch),
            digest=digest(kernel),
            arguments={n: encode(v) for n, v in bound(kernel, args, kwargs).items()},
            options={n: encode(v) for n, v in launch.options.items()},
            signature={n: str(t) for n, t in source.signature.items()} if source is not None else {},
            constants=named(source.constants) if source is not None else {},
            attributes=named(source.attrs) if source is not None else {},
            config=launch.config,
            tuning=self._tuning(kernel),
            error=error,
            **(_local(kernel) if LOCAL in launch.kernel else {}),
        )

    def _tuning(self, kernel: Any) -> str:
        """Name what is tuned: the kernel and how the arguments that are given to all configurations are specialised."""
        tuned = getattr(self._here, "tuning", None)
        if tuned is None:
            return ""
        _, args, meta = tuned
        known = [_specialised(v) for v in args] + sorted(f"{k}={_specialised(v)}" for k, v in meta.items())
        text = f"{kernel.fn.__module__}.{kernel.fn.__qualname__} {known}"
        return hashlib.sha256(text.encode()).hexdigest()[:12]


def bound(kernel: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments by name, with defaults; what is no parameter of the kernel is an option, and left out."""
    own = {n: v for n, v in kwargs.items() if n in kernel.signature.parameters}
    made = kernel.signature.bind_partial(*args, **own)
    made.apply_defaults()
    return dict(made.arguments)


def _local(kernel: Any) -> dict[str, Any]:
    """Return what makes a kernel again that was defined within a function, and that no module holds."""
    cells = dict(zip(kernel.fn.__code__.co_freevars, kernel.fn.__closure__ or (), strict=True))
    jit = {
        n: list(v) for n in ("do_not_specialize", "do_not_specialize_on_alignment") if (v := getattr(kernel, n, None))
    }
    return {"source": kernel.src, "closure": {n: encode(c.cell_contents) for n, c in cells.items()}, "jit": jit}


def digest(kernel: Any) -> str:
    """Return what tells whether a kernel's source is still the one that was recorded."""
    return hashlib.sha256(kernel.src.encode()).hexdigest()[:16]


def versions() -> dict[str, str]:
    """Return the versions that a recording depends on."""
    found = {"python": ".".join(map(str, sys.version_info[:3]))}
    for name in ("torch", "triton"):
        if name in sys.modules:
            found[name] = str(getattr(sys.modules[name], "__version__", "unknown"))
    return found


def _specialised(value: Any) -> str:
    """Return an argument as far as Triton's binder tells it from others."""
    if hasattr(value, "data_ptr") and hasattr(value, "dtype"):
        return f"{value.dtype}{'' if value.data_ptr() % 16 else '16'}"
    if isinstance(value, bool) or not isinstance(value, int):
        return type(value).__name__ if isinstance(value, float) or callable(value) else str(value)
    return "1" if value == 1 else f"i{'64' if abs(value) >= 2**31 else '32'}{'' if value % 16 else '16'}"


def _with_grids(call: Call, counts: Mapping[tuple[tuple[int, ...], str], int], tests: dict[str, int]) -> Call:
    times: dict[tuple[int, ...], int] = {}
    by: dict[tuple[int, ...], dict[int, None]] = {}
    for (grid, test), n in counts.items():
        size = tuple(int(x) for x in grid)
        times[size] = times.get(size, 0) + n
        if test:
            by.setdefault(size, {})[tests.setdefault(test, len(tests))] = None
    return replace(call, grids=tuple(Grid(s, n, tuple(by.get(s, ()))) for s, n in times.items()))
