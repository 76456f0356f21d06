"""The record of a program's launches, as it goes on.

What a launch costs more is one look at what its kernel was launched with before. Everything else happens where Triton
does it once: where it specialises a kernel (`JITFunction._pack_args`, `_do_compile`), loads it (`_init_handles`) or
tunes it (`Autotuner._bench`). The launches themselves are seen in `CompiledKernel.launch_metadata`, which is given the
grid and the arguments of each, also of those of a compiled kernel that a library keeps and launches by itself.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from portability.record import describing, inductor
from portability.record.counting import Counting
from portability.record.entries import Entry, Generated, Size, call_of
from portability.record.model import Call, Grid, Recording

OWN = ("PYTEST_", "TRITON_", "TORCHINDUCTOR_")  # variables that say how a program is run, and not what it is


class Recorder:
    """Collects launches between `start` and `stop`."""

    def __init__(
        self, target: str, ran: bool, program: tuple[str, ...] = (), on_new: Callable[[], None] | None = None
    ) -> None:
        """`target` is what the program is told of or runs on; `ran` says which. `on_new` is called for a new launch."""
        self.target, self.ran, self.program = target, ran, program
        self._on_new = on_new or (lambda: None)
        self._before = dict(os.environ)
        self._test = ""
        self.entries: dict[int, Entry] = {}  # by the compiled kernel
        self._noted: dict[int, Entry] = {}  # those of them that were launched since the test began
        self.generated: dict[int, dict[Size, Generated]] = {}  # by Inductor's kernel and the sizes that it is given
        self.counting: list[Counting] = []  # what counts launches of those kernels
        self.failed: dict[str, Call] = {}
        self._written: dict[int, dict[str, Any]] = {}  # by the compiled kernel: the options of its first launch
        self._here = threading.local()  # what is being specialised, and the configuration that is being tried
        self._exit = contextlib.ExitStack()

    @property
    def test(self) -> str:
        """The test that runs, where a pytest plugin says so."""
        return self._test

    @test.setter
    def test(self, name: str) -> None:
        """Count what was launched until now as the last test's, so that a launch has no test to look at."""
        self._settle()
        self._test = name
        for counting in self.counting:
            counting.entry.test = name

    def start(self) -> None:
        """Begin to record."""
        self._exit.enter_context(self._wrapped())
        self._exit.enter_context(inductor.noted(self))

    def stop(self) -> None:
        """Leave everything as it was."""
        self._exit.close()

    def recording(self) -> Recording:
        """Return what was recorded so far."""
        self._settle()
        generated = (e for sizes in tuple(self.generated.values()) for g in tuple(sizes.values()) for e in g.entries())
        tests: dict[str, int] = {}
        made = [call_of(e, tests) for e in (*self.entries.values(), *generated)]
        paths = tuple(dict.fromkeys(os.path.abspath(p) for p in sys.path))
        calls = (*made, *self.failed.values())
        variables = {n: v for n, v in os.environ.items() if self._before.get(n) != v and not n.startswith(OWN)}
        return Recording(
            self.target, self.ran, self.program, describing.versions(), paths, variables, tuple(tests), calls
        )

    def _settle(self) -> None:
        for counting in tuple(self.counting):  # other threads of the program may go on
            counting.settle()
            counting.entry.close()
        for entry in tuple(self._noted.values()):
            entry.close()
            entry.grid = None  # so that its next launch is noted again
        self._noted.clear()

    # ------------------------------------------------------------------------------------------ what is wrapped

    @contextlib.contextmanager
    def _wrapped(self) -> Iterator[None]:
        from triton.compiler import CompiledKernel
        from triton.runtime.autotuner import Autotuner
        from triton.runtime.jit import JITFunction

        from portability.checks.pretend import replaced
        from portability.record.nowhere import Uncompiled

        with contextlib.ExitStack() as stack:
            for kind in (CompiledKernel, Uncompiled):
                stack.enter_context(replaced(kind, {"launch_metadata": self._launching(kind.launch_metadata)}))
            specialising = {
                "_pack_args": self._packing(JITFunction._pack_args),
                "_do_compile": self._compiling(JITFunction._do_compile),
            }
            stack.enter_context(replaced(JITFunction, specialising))
            stack.enter_context(
                replaced(CompiledKernel, {"_init_handles": self._loading(CompiledKernel._init_handles)})
            )
            stack.enter_context(replaced(Autotuner, {"_bench": self._tuning(Autotuner._bench)}))
            yield

    def _launching(self, plain: Callable[..., Any]) -> Callable[..., Any]:
        from triton import knobs

        runtime, known, note = knobs.runtime, self.entries.get, self._note
        chain = runtime.launch_enter_hook
        hooked = getattr(chain, "calls", None)

        def launch_metadata(compiled: Any, grid: Any, stream: Any, *args: Any) -> Any:
            entry = known(id(compiled))
            if entry is not None and entry.grid == grid:
                entry.times += 1
            else:
                note(entry, compiled, grid, args)
            if hooked is None or hooked or runtime.launch_enter_hook is not chain:
                return plain(compiled, grid, stream, *args)
            return None  # nobody reads it

        return launch_metadata

    def _packing(self, plain: Callable[..., Any]) -> Callable[..., Any]:
        def pack(kernel: Any, backend: Any, kwargs: Any, bound: Any, *rest: Any) -> Any:
            self._here.given = dict(bound), describing.options(kernel, kwargs)
            return self._watched(kernel, lambda: plain(kernel, backend, kwargs, bound, *rest))

        return pack

    def _compiling(self, plain: Callable[..., Any]) -> Callable[..., Any]:
        def compile_it(kernel: Any, *args: Any) -> Any:
            compiled = self._watched(kernel, lambda: plain(kernel, *args))
            self._written[id(compiled)] = getattr(self._here, "given", ({}, {}))[1]
            return compiled

        return compile_it

    def _loading(self, plain: Callable[..., Any]) -> Callable[..., Any]:
        def load(compiled: Any) -> Any:
            try:
                return plain(compiled)
            except Exception as error:
                entry = self.entries.get(id(compiled))
                if entry is not None:
                    entry.error = describing.said(error)
                raise

        return load

    def _tuning(self, plain: Callable[..., Any]) -> Callable[..., Any]:
        def bench(tuner: Any, *args: Any, config: Any, **meta: Any) -> Any:
            self._here.tuned = str(config), (tuner, args, meta)
            try:
                return plain(tuner, *args, config=config, **meta)
            finally:
                self._here.tuned = None

        return bench

    # ------------------------------------------------------------------------------------------------- the notes

    def _note(self, entry: Entry | None, compiled: Any, grid: Any, args: Sequence[Any]) -> None:
        """Count a launch that is not like its kernel's last one, and describe it where it is new."""
        programs = Grid(tuple(int(n) for n in grid)).programs
        new = entry is None
        if entry is None or programs < entry.smallest:  # the smallest is the easiest to run again
            made = self._call(compiled, args)
            if made is None:
                return
            entry = self.entries.setdefault(id(compiled), Entry(made, compiled))
            entry.call, entry.smallest = made, programs
        entry.change(grid, self.test)
        self._noted[id(compiled)] = entry
        if new:
            self._on_new()

    def _call(self, compiled: Any, args: Sequence[Any]) -> Call | None:
        source = getattr(compiled, "src", None)
        kernel = getattr(source, "fn", None)
        if kernel is None:  # compiled from a text of IR: no Python function to have again
            return None
        options = self._written.get(id(compiled))
        if options is None:  # compiled before the recording began
            options = {} if not self.ran else {"num_warps": compiled.metadata.num_warps}
        config, tuning = self._tuned(kernel)
        return describing.call(kernel, describing.named(source, args), options, source, config=config, tuning=tuning)

    def _tuned(self, kernel: Any) -> tuple[str, str]:
        """Return the configuration that is being tried, and what names the launch that it is tried for."""
        tuned = getattr(self._here, "tuned", None)
        if tuned is None:
            return "", ""
        config, (_, args, meta) = tuned
        known = [describing.specialised(v) for v in args]
        known += sorted(f"{k}={describing.specialised(v)}" for k, v in meta.items())
        text = f"{kernel.fn.__module__}.{kernel.fn.__qualname__} {known}"
        return config, hashlib.sha256(text.encode()).hexdigest()[:12]

    def _watched(self, kernel: Any, do: Callable[[], Any]) -> Any:
        """Do it; a launch that fails before there is a kernel to know it by is described with its error."""
        try:
            return do()
        except Exception as error:
            given, options = self._here.given
            config, tuning = self._tuned(kernel)
            call = describing.call(
                kernel, given, options, None, config=config, tuning=tuning, error=describing.said(error)
            )
            self.failed.setdefault(call.identity, call)
            raise

    def note_generated(self, kernel: Any, args: tuple[Any, ...]) -> Generated:
        """Count a launch of a kernel that Inductor generated; return what counts the next one like it."""
        known, sizes = self.generated.setdefault(id(kernel), {}), tuple(a for a in args if type(a) is int)
        new = sizes not in known
        if new:
            known[sizes] = Generated(kernel, list(inductor.calls(kernel, args)))
        known[sizes].change(sizes, self.test)
        if new:
            self._on_new()
        return known[sizes]
