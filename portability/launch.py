"""Launches: a driver that compiles for a target and launches into nothing, and the record of every launch.

Under `ghost`, an operator's own `kernel[grid](...)` on CPU tensors compiles exactly what a launch on the target would
have compiled: the specialisation (divisibility by 16, the value 1, the width of integers) comes from Triton's own
binder, and its launch checks (shared memory, tensor memory, threads, unknown options) run against the limits that the
driver states. Under `recorded`, the same record is kept of launches on a real device.

What is touched of Triton, 3.6 to 3.9: `triton.runtime.driver._active`, `JITFunction.run`, `Autotuner.run` and its
tuning cache, `knobs.compilation.listener`, `knobs.compilation.always_compile`, `knobs.nvidia.dump_ptxas_log`. All of it
is put back on leaving.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from portability.backend import Launch, Limits, Session, axes_of
from portability.model import Finding, Tuning

VERDICT = "portability.json"  # beside the cached binary: what the compiler said when it was made
ERROR_LINE = re.compile(r"^.*?\berror:.*$", re.MULTILINE | re.IGNORECASE)


class CompilerSaidError(RuntimeError):
    """The compiler returned a binary and printed an error: the binary is not what was written."""


@contextlib.contextmanager
def ghost(session: Session, gpu_target: Any, limits: Limits, units: int = 64) -> Iterator[None]:
    """Compile what is launched for `gpu_target` (a triton `GPUTarget`), and launch it into nothing.

    Records go to `session.launches`; Triton's own errors pass through. Not reentrant across threads.
    """
    with _recording(session, ghostly=True), driven(gpu_target, limits, units):
        yield


@contextlib.contextmanager
def driven(gpu_target: Any, limits: Limits, units: int = 64, kind: str = "ghost") -> Iterator[None]:
    """Make a driver of `gpu_target` that has no device the active one; `kind` keeps compiled kernels apart."""
    from triton.runtime import driver

    before = driver._active
    driver.set_active(_GhostDriver(gpu_target, limits, units, kind))
    try:
        yield
    finally:
        driver._active = before


@contextlib.contextmanager
def recorded(session: Session) -> Iterator[None]:
    """Record what is launched on the active device into `session.launches`; launches happen as ever."""
    with _recording(session, ghostly=False):
        yield


# ----------------------------------------------------------------------------------------------- the driver


def _nothing(*args: Any, **kwargs: Any) -> None:  # noqa: ARG001 - stands for functions of many signatures
    return None


class _GhostUtils:
    """What Triton asks of a loaded driver library, answered from the target's limits."""

    def __init__(self, gpu_target: Any, limits: Limits, units: int) -> None:
        self._threads = limits.threads or 1024
        self._properties = {
            "max_shared_mem": limits.shared_memory or 2**31 - 1,
            "multiprocessor_count": units,
            "max_num_regs": limits.registers or 65536,
            "warpSize": gpu_target.warp_size,
            "sm_clock_rate": 1,
            "mem_clock_rate": 1,
            "mem_bus_width": 1,
            "arch": str(gpu_target.arch),
        }

    def get_device_properties(self, device: Any) -> dict[str, Any]:
        return self._properties

    def load_binary(self, *args: Any) -> tuple[None, int, int, int, int]:
        return None, 0, 0, 0, self._threads  # no module: nothing is unloaded later

    def unload_module(self, module: Any) -> None:
        return None

    def __getattr__(self, name: str) -> Callable[..., None]:
        return _nothing  # descriptors are filled in by vendor functions: nothing to fill here


class _GhostDriver:
    """A driver with no device. Its device key differs per target, since Triton caches compiled kernels by device."""

    def __init__(self, gpu_target: Any, limits: Limits, units: int, kind: str) -> None:
        self.target = gpu_target
        self.utils = _GhostUtils(gpu_target, limits, units)
        self._key = f"{kind}:{gpu_target.backend}:{gpu_target.arch}:{limits.shared_memory}"

    def launcher_cls(self, source: Any, metadata: Any) -> Callable[..., None]:
        return _nothing

    def get_current_target(self) -> Any:
        return self.target

    def get_current_device(self) -> str:
        return self._key

    def set_current_device(self, device: Any) -> None:
        return None

    def get_current_stream(self, device: Any = None) -> int:
        return 0

    def get_device_capability(self, *args: Any) -> tuple[int, int]:
        return divmod(int(self.target.arch), 10) if self.target.backend == "cuda" else (9, 4)

    def get_active_torch_device(self) -> Any:
        import torch

        return torch.device("cpu")

    def get_device_interface(self) -> Any:
        import torch

        return torch.cpu

    def map_python_to_cpp_type(self, kind: str) -> str:
        return kind

    def get_empty_cache_for_benchmark(self) -> Any:
        return SimpleNamespace(zero_=lambda: None)

    def clear_cache(self, cache: Any) -> None:
        return None

    def get_benchmarker(self) -> Callable[..., list[float]]:
        return compile_only


def compile_only(call: Callable[[], Any], quantiles: Any = None, **kwargs: Any) -> list[float]:  # noqa: ARG001 - Triton's
    """Call once, as a benchmarker that has no device: one compile for each configuration."""
    call()  # compiles the configuration; there is nothing to time
    return [1.0] * len(quantiles or (0,))


# ------------------------------------------------------------------------------------------------ the record


@contextlib.contextmanager
def _recording(session: Session, ghostly: bool) -> Iterator[None]:
    from triton import knobs
    from triton.runtime.autotuner import Autotuner
    from triton.runtime.jit import JITFunction

    tuning: list[str] = [""]
    compiler = _Compiler()
    plain_run, plain_tune = JITFunction.run, Autotuner.run

    def run(self: Any, *args: Any, grid: Any, warmup: bool = False, **kwargs: Any) -> Any:
        launch = describe(self, kwargs, tuning[0])
        session.launches.append(launch)

        def run_once() -> Any:
            return plain_run(self, *args, grid=_grid_into(launch, grid), warmup=warmup, **kwargs)

        try:
            launch.compiled = compiler.call(run_once, launch)
        except Exception as error:
            launch.error = error
            launch.compiled = _refused_at_launch(self, error, compiler.told)
            raise
        finally:
            _fill(launch, self)
        if ERROR_LINE.search(launch.stderr):
            launch.error = CompilerSaidError(launch.stderr.strip())
            raise launch.error
        return launch.compiled

    def tune(self: Any, *args: Any, **kwargs: Any) -> Any:
        trials: list[float] = []
        with private_tuning(self, tuning, ghostly, trials):
            try:
                return plain_tune(self, *args, **kwargs)
            finally:
                _note_tuning(session, self, trials, ghostly)
                warn_of_configurations(session)

    state = knobs.compilation.listener, knobs.nvidia.dump_ptxas_log
    JITFunction.run, Autotuner.run = run, tune
    knobs.compilation.listener, knobs.nvidia.dump_ptxas_log = compiler.listener, True
    try:
        yield
    finally:
        JITFunction.run, Autotuner.run = plain_run, plain_tune
        knobs.compilation.listener, knobs.nvidia.dump_ptxas_log = state


class _CachedWithoutVerdict(Exception):
    """A binary is in the cache, but not what the compiler said of it."""


class _Compiler:
    """Runs a launch, and keeps what the compiler wrote beside the binary that it made.

    The verdict must outlive the process: with a warm cache nothing is printed any more.
    """

    verdicts: dict[str, Mapping[str, Any]] = {}  # noqa: RUF012 - by hash, of this process: its in-memory cache too

    def __init__(self) -> None:
        self.told = ""  # the hash of what the last call compiled or took from the cache on disk
        self._capture: Capture | None = None
        self._started = 0.0

    def call(self, run: Callable[[], Any], launch: Launch) -> Any:
        from triton import knobs

        self.told = ""
        try:
            compiled = self._captured(run, launch)
        except _CachedWithoutVerdict:
            always, knobs.compilation.always_compile = knobs.compilation.always_compile, True
            try:
                compiled = self._captured(run, launch)
            finally:
                knobs.compilation.always_compile = always
        verdict = self.verdicts.get(getattr(compiled, "hash", ""), {})
        launch.stderr = launch.stderr or str(verdict.get("stderr", ""))
        launch.ptxas = str(verdict.get("ptxas", ""))
        launch.compile_seconds = float(verdict.get("seconds", 0.0))
        return compiled

    def _captured(self, run: Callable[[], Any], launch: Launch) -> Any:
        with Capture() as self._capture:
            self._started = time.perf_counter()
            try:
                return run()
            except _CachedWithoutVerdict:
                raise
            except Exception:  # of whatever kind: it is raised again, with what the compiler wrote kept beside it
                launch.stderr = self._capture.stderr()
                raise

    def listener(
        self, *, src: Any, metadata: Any, metadata_group: Mapping[str, str], times: Any, cache_hit: bool
    ) -> None:
        name = self.told = metadata["hash"]
        path = Path(next(p for p in metadata_group.values() if p.endswith(".json"))).parent / VERDICT
        if cache_hit:
            try:
                self.verdicts[name] = json.loads(path.read_text())
            except (OSError, ValueError):
                raise _CachedWithoutVerdict from None
            return
        capture = self._capture
        assert capture is not None, "the listener is called inside a launch"
        verdict = {
            "stderr": capture.stderr(),
            "ptxas": capture.stdout(),
            "seconds": round(time.perf_counter() - self._started, 4),
        }
        self.verdicts[name] = verdict
        _write_whole(path, json.dumps(verdict))


class Capture:
    """What is written on file descriptor 2 (by LLVM, which knows no `sys.stderr`) and on `sys.stdout` meanwhile."""

    def __enter__(self) -> Capture:
        sys.stderr.flush()
        self._file = tempfile.TemporaryFile()
        self._kept = os.dup(2)
        os.dup2(self._file.fileno(), 2)
        self._out = io.StringIO()
        self._redirect = contextlib.redirect_stdout(self._out)
        self._redirect.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._redirect.__exit__(*error)
        sys.stderr.flush()
        os.dup2(self._kept, 2)
        os.close(self._kept)
        self._text = self._read()
        self._file.close()
        if self._text:  # hand on what was held back: a person may want to see it
            with contextlib.suppress(OSError):
                os.write(2, self._text.encode())

    def _read(self) -> str:
        self._file.seek(0)
        return self._file.read().decode(errors="replace")

    def stderr(self) -> str:
        """Return what was written on file descriptor 2 so far."""
        return self._read()

    def stdout(self) -> str:
        """Return what was printed so far."""
        return self._out.getvalue()


def _write_whole(path: Path, text: str) -> None:
    """Write a file that other processes see whole or not at all."""
    partial = path.with_name(f"{path.name}.{os.getpid()}")
    partial.write_text(text)
    partial.replace(path)


def describe(kernel: Any, kwargs: Mapping[str, Any], config: str) -> Launch:
    """Return the record of a launch of `kernel` (a `JITFunction`) as far as it is known before it is compiled."""
    code = kernel.fn.__code__
    options = {k: v for k, v in kwargs.items() if k not in kernel.arg_names}
    return Launch(
        kernel=kernel.fn.__qualname__,
        file=code.co_filename,
        line=code.co_firstlineno,
        options=options,
        num_warps=int(options.get("num_warps", 4)),
        config=config,
        function=kernel,
    )


def _grid_into(launch: Launch, grid: Any) -> Any:
    if not callable(grid):
        launch.grid = axes_of(grid)
        return grid

    def call(meta: Any) -> Any:
        made = grid(meta)
        launch.grid = axes_of(made)
        return made

    return call


def _refused_at_launch(kernel: Any, error: Exception, told: str) -> Any:
    """Return what a launch compiled before it was refused: its resources say by how much. None where compiling failed:
    what the kernel was compiled to before is then another specialisation's.

    A kernel that this process holds is not told of again; the error says how much it needs.
    """
    from triton.runtime import driver

    caches = kernel.device_caches.get(driver.active.get_current_device())
    needed = getattr(error, "required", None)  # of Triton's OutOfResources
    for made in reversed(caches[0].values()) if caches else ():
        if made.hash == told if told else needed is not None and needed in _needs(made.metadata):
            return made
    return None


def _needs(metadata: Any) -> tuple[int | None, ...]:
    """Return what Triton checks at a launch: bytes of shared memory, columns of tensor memory, threads."""
    threads = metadata.num_warps * getattr(metadata.target, "warp_size", 32)
    return metadata.shared, getattr(metadata, "tmem_size", None), threads


def _fill(launch: Launch, kernel: Any) -> None:
    compiled = launch.compiled
    if compiled is None or not hasattr(compiled, "src"):
        return

    def named(values: Mapping[Any, Any]) -> dict[str, Any]:
        return {kernel.arg_names[k[0]] if len(k) == 1 else str(k): v for k, v in values.items()}

    launch.signature = dict(compiled.src.signature)
    launch.constants = named(compiled.src.constants)
    launch.attributes = named(compiled.src.attrs)
    launch.hash = compiled.hash
    launch.num_warps = compiled.metadata.num_warps


@contextlib.contextmanager
def private_tuning(
    tuner: Any, tuning: list[str], ghostly: bool, trials: list[float] | None = None
) -> Iterator[None]:  # fmt: skip
    """Label each configuration's launches; under the ghost choose anew, with its benchmarker, and leave no trace.

    `trials` is given the seconds that each configuration took to try.
    """
    plain_bench = tuner._bench

    def bench(*args: Any, config: Any, **meta: Any) -> Any:
        tuning[0], started = str(config), time.perf_counter()
        try:
            return plain_bench(*args, config=config, **meta)
        finally:
            tuning[0] = ""
            if trials is not None:
                trials.append(time.perf_counter() - started)

    private: dict[str, Any] = {"_bench": bench}
    if ghostly:
        private |= {"cache": {}, "cache_results": False, "do_bench": compile_only, "_do_bench": compile_only}
    own = {n: tuner.__dict__[n] for n in private if n in tuner.__dict__}
    tuner.__dict__.update(private)
    try:
        yield
    finally:
        for n in private:
            tuner.__dict__.pop(n, None)
        tuner.__dict__.update(own)


def _note_tuning(session: Session, tuner: Any, trials: list[float], ghostly: bool) -> None:
    """Keep what a tuning took: Triton tells of it from 3.8 on."""
    if not trials:
        return  # the key was tuned before
    kernel = tuner.base_fn.__name__
    key = ", ".join(map(str, next(reversed(tuner.cache), ())))
    chosen = "" if ghostly or tuner.best_config is None else str(tuner.best_config)
    session.tunings[kernel, key] = Tuning(kernel, key, len(trials), round(sum(trials), 4), chosen)


def warn_of_configurations(session: Session) -> None:
    """Say which configurations of an autotuned kernel cannot run here: the tuner drops them without a word."""
    for launch in session.launches:
        if launch.config and launch.error is not None:
            first = (str(launch.error).strip() or type(launch.error).__name__).splitlines()[0]
            finding = Finding(
                "config-fails", f"{launch.kernel}: {launch.config}: {first}", f"{launch.file}:{launch.line}"
            )
            if finding not in session.warnings:
                session.warnings.append(finding)
