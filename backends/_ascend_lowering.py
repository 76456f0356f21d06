"""Launches for Ascend: lowered where there is no NPU, and recorded where there is one.

An operator's own `kernel[grid](...)` on CPU tensors goes through triton-ascend's `JITFunction.run`, so that its binder
decides the specialisation (types, divisibility by 16, constants) as at a launch. The stages have the compilers' names:
`frontend` (Python to Triton IR), `ttadapter` (to Linalg) and, where ascendnpu-ir is installed, `hivm`. The last one,
`npubin`, needs CANN and is never claimed.

What is touched of triton-ascend 3.2.0: `backends["ascend"]`, `driver.active`, `JITFunction.run`, `Autotuner.run` and
its tuning cache. All of it is put back on leaving.
"""

from __future__ import annotations

import contextlib
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from portability.backend import Launch, Limits, Session
from portability.backends import _ascend_hivm as hivm
from portability.ghost import compile_only
from portability.launch import describe, private_tuning, warn_of_configurations
from portability.model import Finding
from portability.verdicts import ERROR_LINE, Capture, CompilerSaidError

PLAN = "hivm.json"  # beside the cached Linalg: what AscendNPU IR made of it
# A stage's name in triton-ascend's errors -> its name
STAGES = {"MLIRCompile": "frontend", "ConvertTritonIRToLinalgIR": "ttadapter", "ConvertLinalgRToBinary": "npubin"}
FRAME = re.compile(
    r"///-+\[ERROR\].*$|^\[\w+\] encounters error:$|^\[INFO\]: The compiled kernel cache .*$", re.MULTILINE
)
# Of a temporary file, or of the kernel, whose line is recorded apart.
PLACE = re.compile(r'loc\("[^"]*":\d+:\d+\): |/\S*\.(?:py|mlir):\d+:\d+: ')
ATTEMPTS = 3  # of a program that ends by a signal
CRASHED = "PLEASE submit a bug report"  # LLVM's words before its stack dump
TILE = re.compile(r"memref\.alloc\(\)[^:\n]*: memref<((?:\d+x)+\w+)>")


@contextlib.contextmanager
def lowering(session: Session, arch: str, limits: Limits) -> Iterator[None]:
    """Lower what is launched for `arch` ("Ascend910B3") and launch nothing; errors are triton-ascend's own."""
    from triton.backends import Backend, backends
    from triton.runtime import driver

    stock, active = backends["ascend"], driver.active
    backends["ascend"] = Backend(_without_npubin(), stock.driver)
    driver.set_active(_Driver(arch))
    try:
        with recording(session, lambda launch: _plan(session, launch, arch, limits)):
            yield
    finally:
        backends["ascend"] = stock
        driver.set_active(active)


@contextlib.contextmanager
def recording(session: Session, plan: Callable[[Launch], None] | None = None) -> Iterator[None]:
    """Record launches in `session.launches`. With `plan` they end after the compiler, and it judges what was made."""
    from triton.runtime.autotuner import Autotuner
    from triton.runtime.jit import JITFunction

    tuning: list[str] = [""]
    plain_run, plain_tune = JITFunction.run, Autotuner.run

    def run(self: Any, *args: Any, grid: Any, warmup: bool = False, **kwargs: Any) -> Any:
        launch = describe(self, kwargs, tuning[0])
        session.launches.append(launch)
        if not callable(grid):
            launch.grid = tuple(int(n) for n in grid)
        began = time.perf_counter()
        try:
            # A warm-up ends before the launch, and before triton-ascend's check of the grid: run.py checks it.
            _compile(launch, lambda: plain_run(self, *args, grid=grid, warmup=warmup or plan is not None, **kwargs))
            if callable(grid):
                launch.grid = tuple(int(n) for n in grid(self.binder(*args, **kwargs)[0]))
            _fill(launch, self)
            if plan is not None:
                plan(launch)
        except Exception as error:
            _name_stage(error, launch)
            raise
        finally:
            launch.compile_seconds = _first_time(launch.compiled, time.perf_counter() - began)
        return launch.compiled

    def tune(self: Any, *args: Any, **kwargs: Any) -> Any:
        with private_tuning(self, tuning, plan is not None):
            try:
                return plain_tune(self, *args, **kwargs)
            finally:
                warn_of_configurations(session)

    JITFunction.run, Autotuner.run = run, tune
    try:
        yield
    finally:
        JITFunction.run, Autotuner.run = plain_run, plain_tune


def install_driver(arch: str) -> None:
    """Give Triton a driver that has no device: `@triton.autotune` asks for one when a kernel file is imported."""
    from triton.runtime import driver

    driver.set_active(_Driver(arch))


class _Driver:
    """What `JITFunction.run` and the autotuner ask of a driver before a launch."""

    def __init__(self, arch: str) -> None:
        self._arch = arch

    def get_current_target(self) -> Any:
        from triton.backends.compiler import GPUTarget

        return GPUTarget("npu", self._arch, 0)  # 0: an NPU has no warps

    def get_current_device(self) -> str:
        return f"lowering:{self._arch}"  # the key of the cache that each kernel keeps of what it compiled

    def get_current_stream(self, device: Any = None) -> int:
        return 0

    def get_benchmarker(self) -> Callable[..., list[float]]:
        return compile_only


@cache
def _without_npubin() -> type:
    from triton.backends.ascend.compiler import AscendBackend, _parse_linalg_metadata

    class Lowering(AscendBackend):  # type: ignore[misc]  # no type stubs are published
        """triton-ascend's compiler, with Linalg as its result."""

        def __init__(self, target: Any) -> None:
            super().__init__(target)
            self.binary_ext = "ttadapter"

        def hash(self) -> str:
            """Part of the cache's key: a cached Linalg must not be taken for a cached binary."""
            return f"{super().hash()}-ttadapter-{hivm.release()}"

        def add_stages(self, stages: dict[str, Any], options: Any) -> None:
            super().add_stages(stages, options)
            del stages["npubin"]
            to_linalg = stages["ttadapter"]

            def ttadapter(source: Any, metadata: dict[str, Any]) -> str:
                linalg: str = again_if_killed(lambda: to_linalg(source, metadata))
                _parse_linalg_metadata(linalg, metadata)  # the kernel's name and core, which `npubin` would note
                return linalg

            stages["ttadapter"] = ttadapter

    return Lowering


def again_if_killed(stage: Callable[[], str]) -> str:
    """Return what a stage returns that runs a program, which a signal may end ATTEMPTS - 1 times.

    `triton-adapter-opt` reads memory that is freed: one in a hundred runs over an attention kernel ends by a signal,
    the same input passes the next time. What is wrong with a kernel ends it each time.
    """
    for _ in range(ATTEMPTS - 1):
        try:
            return stage()
        except subprocess.CalledProcessError as error:
            if error.returncode >= 0:
                raise
    return stage()


def _compile(launch: Launch, run: Callable[[], Any]) -> None:
    """Keep what `run` returns, and what it writes on file descriptor 2; its advice on standard output is dropped."""
    launch.stage = "frontend"
    with Capture() as said:
        try:
            launch.compiled = run()
        finally:
            launch.stderr = said.stderr()
    if ERROR_LINE.search(launch.stderr):
        raise CompilerSaidError(launch.stderr.strip())


def _name_stage(error: Exception, launch: Launch) -> None:
    launch.error = error
    if hasattr(error, "stage_name"):  # triton-ascend's MLIRCompilationError
        launch.stage = STAGES.get(error.stage_name, launch.stage)
        stderr, launch.stderr = (
            launch.stderr,
            launch.stderr or str(error),
        )  # a stage in a process of its own says it there
        error.message = f"{launch.stage}: {_said(str(error), stderr)}"  # type: ignore[attr-defined]


def _fill(launch: Launch, kernel: Any) -> None:
    compiled = launch.compiled
    launch.stage = "npubin" if "npubin" in compiled.asm else "ttadapter"
    launch.hash = compiled.hash
    launch.signature = dict(compiled.src.signature)
    launch.constants = dict(compiled.src.constants)
    properties = compiled.src.attrs.to_dict()["arg_properties"]
    launch.attributes = {
        name: [["tt.divisibility", 16]]
        for i, name in enumerate(kernel.arg_names)
        if i in properties["tt.divisibility"] and name not in launch.constants
    }
    compiled.asm = {k: v.decode() if isinstance(v, bytes) and k != "npubin" else v for k, v in compiled.asm.items()}


def _said(message: str, stderr: str) -> str:
    """Return what a stage says without its frame, paths of temporary files and addresses, which differ each time."""
    said, crashed, _ = FRAME.sub("", message).partition(CRASHED)
    lines = ERROR_LINE.findall(stderr)  # the front end's passes say on file descriptor 2 what is wrong
    lines += [line for line in said.splitlines() if line.strip()]
    return PLACE.sub("", "\n".join([*lines, *(["the compiler crashed"] if crashed else [])]))


def _first_time(compiled: Any, seconds: float) -> float:
    """Return the seconds that a kernel took when it was first launched here: a later launch finds it made."""
    if compiled is None:
        return seconds
    compiled.seconds = getattr(compiled, "seconds", seconds)
    return float(compiled.seconds)


# ------------------------------------------------------------------------------------------- what it would need


def _plan(session: Session, launch: Launch, arch: str, limits: Limits) -> None:
    """Note on the launch what AscendNPU IR planned. Raises Triton's errors where it cannot, or memory is too small."""
    from triton.compiler.errors import MLIRCompilationError
    from triton.runtime.errors import OutOfResources

    compiled = launch.compiled
    if "llvm.inline_asm" in compiled.asm["ttadapter"]:
        message = f"{launch.kernel}: inline assembly is handed on unread: only npubin's assembler would refuse it"
        session.warnings.append(Finding("inline-assembly", message, f"{launch.file}:{launch.line}"))
    if hivm.compiler() is None:
        need, limit, memory = estimate(compiled.asm["ttadapter"], compiled.metadata.mix_mode, limits)
        if need > limit:
            raise OutOfResources(need, limit, f"{memory} (an estimate: the largest tile that is loaded at once)")
        return
    launch.stage = "hivm"
    plan = compiled.plan = _cached_plan(compiled, arch)
    if plan.overflow is not None:
        memory, need, limit = plan.overflow
        raise OutOfResources(need, limit, f"{memory}, as AscendNPU IR {hivm.release()} plans it")
    if plan.error:
        raise MLIRCompilationError("hivm", plan.error)
    compiled.asm["hivm"] = plan.text


def _cached_plan(compiled: Any, arch: str) -> hivm.Plan:
    """Failures are kept too: they cost as much as successes."""
    from triton.runtime.cache import get_cache_manager

    if hasattr(compiled, "plan"):
        return compiled.plan  # type: ignore[no-any-return]
    folder = get_cache_manager(compiled.hash)
    path = folder.get_file(PLAN)
    if path is not None:
        with open(path) as file:
            return hivm.from_text(file.read())
    linalg = re.sub(r', mix_mode = "[^"]*"', "", compiled.asm["ttadapter"])  # as triton-ascend removes it
    plan = hivm.plan(linalg, arch, compiled.metadata._asdict())
    folder.put(hivm.to_text(plan), PLAN, binary=False)
    return plan


def estimate(linalg: str, core: str, limits: Limits) -> tuple[int, int, str]:
    """Return the bytes of the largest tile that a kernel loads at once, the limit and the memory it must fit into.

    A vector kernel (`core` "aiv") loads into the unified buffer; one that also multiplies matrices may load into L1.
    """
    tiles = [hivm.size_of(shape) for shape in TILE.findall(linalg)]
    memory = "UB" if core == "aiv" else "L1"
    return max(tiles, default=0), limits.buffers[memory], memory
