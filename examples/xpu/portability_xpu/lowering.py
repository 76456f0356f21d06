"""Launches for Intel GPUs where there is none: SPIR-V by triton-xpu, native code by ocloc, and the traps between.

triton-xpu asks SYCL for the device that it compiles for, and compiles a C extension to do so. Here the device is stated
instead: the architecture in Triton's `GPUTarget` is a table of properties, and its compiler reads nothing else.

What is touched of triton-xpu 3.3: `backends["intel"]`, `driver.active`, `JITFunction.run`, `Autotuner.run` and its
tuning cache. All of it is put back on leaving.
"""

from __future__ import annotations

import contextlib
import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from portability.backend import Launch, Limits, Session
from portability.ghost import compile_only
from portability.launch import describe, private_tuning, warn_of_configurations
from portability.model import Finding
from portability.verdicts import ERROR_LINE, Capture, CompilerSaidError
from portability_xpu import native, spirv

ASSEMBLY = re.compile(r"\btt\.elementwise_inline_asm\b")
FAILURES = {e.__name__: e for e in (native.NativeCompilerError, native.EmptyBinaryError, CompilerSaidError)}


@dataclass(frozen=True)
class Device:
    """What triton-xpu and ocloc need to know of a device that is not here."""

    properties: Mapping[str, Any]  # `target.arch` of triton-xpu, as its driver would read them from SYCL
    compiler: str  # its name for `ocloc compile`
    disassembler: str  # and for `ocloc disasm`


class DroppedAssemblyError(CompilerSaidError):
    """Inline assembly that has no trace in the native code. `line` is the kernel's own, "file:line"."""

    def __init__(self, message: str, line: str = "") -> None:
        super().__init__(message)
        self.line = line


@contextlib.contextmanager
def compiling(session: Session, device: Device, limits: Limits, to_native: bool) -> Iterator[None]:
    """Compile what is launched for `device`, as far as SPIR-V or on to native code, and launch it into nothing."""
    from triton.backends import Backend, backends
    from triton.runtime import driver
    from triton.runtime.autotuner import Autotuner
    from triton.runtime.jit import JITFunction

    stock, active = backends["intel"], driver.active
    plain_run, plain_tune = JITFunction.run, Autotuner.run
    tuning: list[str] = [""]

    def run(self: Any, *args: Any, grid: Any, warmup: bool = False, **kwargs: Any) -> Any:  # noqa: ARG001 - Triton's
        launch = describe(self, kwargs, tuning[0])
        session.launches.append(launch)
        began = time.perf_counter()
        try:
            # A warm-up ends before the launch: nothing is loaded.
            _compile(launch, lambda: plain_run(self, *args, grid=grid, warmup=True, **kwargs))
            launch.grid = _grid(self, grid, args, kwargs)
            _fill(launch, self)
            _check_limits(launch, limits)
            if to_native:
                _to_native(session, launch, device)
            elif spirv.has_assembly(launch.compiled.asm["spv"]):
                _warn_of_assembly(session, launch)
        except Exception as error:
            launch.error = error
            raise
        finally:
            launch.compile_seconds = time.perf_counter() - began
        return launch.compiled

    def tune(self: Any, *args: Any, **kwargs: Any) -> Any:
        with private_tuning(self, tuning, ghostly=True):
            try:
                return plain_tune(self, *args, **kwargs)
            finally:
                warn_of_configurations(session)

    backends["intel"] = Backend(_offline(), stock.driver)
    driver.set_active(_Driver(device))
    JITFunction.run, Autotuner.run = run, tune
    try:
        yield
    finally:
        JITFunction.run, Autotuner.run = plain_run, plain_tune
        backends["intel"] = stock
        driver.set_active(active)


def install_driver(device: Device) -> None:
    """Give Triton a driver that has no device: `@triton.autotune` asks for one when a kernel file is imported."""
    from triton.runtime import driver

    driver.set_active(_Driver(device))


class _Driver:
    """What `JITFunction.run` and the autotuner ask of a driver before a launch."""

    def __init__(self, device: Device) -> None:
        self._device = device

    def get_current_target(self) -> Any:
        from triton.backends.compiler import GPUTarget

        return GPUTarget("xpu", dict(self._device.properties), 32)

    def get_current_device(self) -> str:
        return f"compiling:{self._device.compiler}"  # the key of the cache that each kernel keeps of what it compiled

    def get_current_stream(self, device: Any = None) -> int:
        return 0

    def get_benchmarker(self) -> Callable[..., list[float]]:
        return compile_only


@cache
def _offline() -> type:
    from triton.backends import backends
    from triton.backends.compiler import BaseBackend

    class Offline(backends["intel"].compiler):  # type: ignore[misc]  # no type stubs are published
        """triton-xpu's compiler for a device that is stated, not asked."""

        def __init__(self, target: Any) -> None:
            BaseBackend.__init__(self, target)  # and not triton-xpu's own, which compiles against SYCL's headers
            self.device_arch = ""  # no architecture to look up with ocloc: the properties are whole
            self.properties = self.parse_target(target.arch)
            self.binary_ext = "spv"

    return Offline


def _compile(launch: Launch, run: Callable[[], Any]) -> None:
    launch.stage = "spv"
    with Capture() as said:
        try:
            launch.compiled = run()
        finally:
            launch.stderr = said.stderr()
    if ERROR_LINE.search(launch.stderr):
        raise CompilerSaidError(launch.stderr.strip())


def _grid(kernel: Any, grid: Any, args: Any, kwargs: Any) -> tuple[int, ...]:
    from triton.runtime import driver

    if callable(grid):
        binder = kernel.device_caches[driver.active.get_current_device()][3]
        grid = grid(binder(*args, **kwargs)[0])
    return tuple(int(n) for n in grid)


def _fill(launch: Launch, kernel: Any) -> None:
    compiled = launch.compiled

    def named(values: Mapping[Any, Any]) -> dict[str, Any]:
        return {kernel.arg_names[k[0]] if len(k) == 1 else str(k): v for k, v in values.items()}

    launch.hash = compiled.hash
    launch.signature = dict(compiled.src.signature)
    launch.constants = named(compiled.src.constants)
    launch.attributes = named(compiled.src.attrs)
    launch.num_warps = compiled.metadata.num_warps


def _check_limits(launch: Launch, limits: Limits) -> None:
    """Raise Triton's own error: past them, ocloc does not come back."""
    from triton.runtime.errors import OutOfResources

    metadata = launch.compiled.metadata
    if limits.shared_memory is not None and metadata.shared > limits.shared_memory:
        raise OutOfResources(metadata.shared, limits.shared_memory, "shared memory")
    threads = metadata.num_warps * metadata.threads_per_warp
    if limits.threads is not None and threads > limits.threads:
        raise OutOfResources(threads, limits.threads, "threads")


def _warn_of_assembly(session: Session, launch: Launch) -> None:
    message = f"{launch.kernel}: inline assembly is handed on unread: only ocloc's assembler would refuse it"
    session.warnings.append(Finding("inline-assembly", message, f"{launch.file}:{launch.line}"))


# -------------------------------------------------------------------------------------------------- native code


def _to_native(session: Session, launch: Launch, device: Device) -> None:
    """Note on the launch its native code, and add it to the stages. Raises what `native` and the traps raise."""
    compiled = launch.compiled
    launch.stage = "native"
    made = compiled.native = _cached(compiled, device)
    compiled.asm = dict(compiled.asm) | {"xebin": made.binary, "xeasm": made.assembly}
    if spirv.has_assembly(compiled.asm["spv"]) and _drops_assembly(compiled, made, device):
        raise DroppedAssemblyError(
            f"{launch.kernel}: ocloc drops the inline assembly: the code is the same whatever it says",
            _assembly_line(launch),
        )
    if made.spills:
        message = f"{launch.kernel}: ocloc spills around {made.spills} bytes, with {made.registers} registers a thread"
        session.warnings.append(Finding("register-spills", message, f"{launch.file}:{launch.line}"))


def _drops_assembly(compiled: Any, made: native.Native, device: Device) -> bool:
    """Whether other letters in the place of the assembly make the same code."""
    other = spirv.with_other_assembly(compiled.asm["spv"])
    try:
        metadata = compiled.metadata
        nonsense = native.compile_spirv(other, metadata.name, device.compiler, metadata.build_flags)
    except (native.NativeCompilerError, native.EmptyBinaryError):
        return False  # it was read
    return nonsense.code == made.code


def _assembly_line(launch: Launch) -> str:
    from portability.checks.assembly import inline_assembly_line

    return inline_assembly_line(launch, str) or f"{launch.file}:{launch.line}"


def _cached(compiled: Any, device: Device) -> native.Native:
    """Return the native code of a compiled kernel, kept beside its SPIR-V. Failures are kept too: they cost as much."""
    from triton.runtime.cache import get_cache_manager

    if hasattr(compiled, "native"):
        return compiled.native  # type: ignore[no-any-return]
    folder, name = get_cache_manager(compiled.hash), f"{device.compiler}-{native.release()}"
    verdict = folder.get_file(f"{name}.json")
    if verdict is None:
        try:
            made = native.compile_spirv(
                compiled.asm["spv"], compiled.metadata.name, device.compiler, compiled.metadata.build_flags
            )
        except (native.NativeCompilerError, native.EmptyBinaryError) as error:
            folder.put(json.dumps({"failure": type(error).__name__, "message": str(error)}), f"{name}.json", False)
            raise
        folder.put(made.binary, f"{name}.xebin")
        folder.put(native.disassemble(made.binary, device.disassembler), f"{name}.xeasm", False)
        known = {"spills": made.spills, "registers": made.registers}
        verdict = folder.put(json.dumps(known), f"{name}.json", False)
    with open(verdict) as file:
        known = json.load(file)
    if "failure" in known:
        raise FAILURES[known["failure"]](known["message"])
    with open(folder.get_file(f"{name}.xebin"), "rb") as binary, open(folder.get_file(f"{name}.xeasm")) as assembly:
        data, text = binary.read(), assembly.read()
    code = dict(native.kernels(data)).get(compiled.metadata.name, b"")
    return native.Native(data, code, known["spills"], known["registers"], text)
