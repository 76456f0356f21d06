"""Launches: the record of each that an operator makes, on a device or into nothing.

Under `ghost`, an operator's own `kernel[grid](...)` on CPU tensors compiles exactly what a launch on the target would
have compiled: the specialisation (divisibility by 16, the value 1, the width of integers) comes from Triton's own
binder, and its launch checks (shared memory, tensor memory, threads, unknown options) run against the limits that the
driver states. Under `recorded`, the same record is kept of launches on a real device.

What is touched of Triton, 3.6 to 3.9: `JITFunction.run`, `Autotuner.run` and its tuning cache,
`knobs.compilation.listener`, `knobs.nvidia.dump_ptxas_log`; and what `ghost.py` and `verdicts.py` say. All of it is put
back on leaving.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping
from typing import Any

from portability.backend import Launch, Limits, Session, axes_of
from portability.ghost import compile_only, driven
from portability.model import Finding, Tuning
from portability.verdicts import ERROR_LINE, Compiler, CompilerSaidError


@contextlib.contextmanager
def ghost(session: Session, gpu_target: Any, limits: Limits, units: int = 64) -> Iterator[None]:
    """Compile what is launched for `gpu_target` (a triton `GPUTarget`), and launch it into nothing.

    Records go to `session.launches`; Triton's own errors pass through. Not reentrant across threads.
    """
    with _recording(session, ghostly=True), driven(gpu_target, limits, units):
        yield


@contextlib.contextmanager
def recorded(session: Session) -> Iterator[None]:
    """Record what is launched on the active device into `session.launches`; launches happen as ever."""
    with _recording(session, ghostly=False):
        yield


@contextlib.contextmanager
def _recording(session: Session, ghostly: bool) -> Iterator[None]:
    from triton import knobs
    from triton.runtime.autotuner import Autotuner
    from triton.runtime.jit import JITFunction

    tuning: list[str] = [""]
    compiler = Compiler()
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
