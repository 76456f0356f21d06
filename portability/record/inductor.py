"""Kernels that torch.compile generates: Inductor compiles and launches them itself, past `JITFunction.run`.

Where a device is here, its launcher is counted and nothing else is touched. Into nothing, Inductor generates what it
would for the device, and neither compiles nor launches it. What is recorded is the whole module that it wrote, since
that file is gone with Inductor's cache.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from portability.record.imports import on_import

LAUNCHER = "torch._inductor.runtime.triton_heuristics"
HELPERS = "torch._inductor.runtime.triton_helpers"
# Launch options that mean the same on every target; the others Inductor chooses for each device anew.
OPTIONS = ("num_warps", "num_stages", "debug", "sanitize_overflow", "enable_fp_fusion")

Note = Callable[[Any, Sequence[Any]], None]  # an Inductor kernel, and what it was launched with


@contextlib.contextmanager
def noted(note: Note) -> Iterator[None]:
    """Call `note` after each launch of a generated kernel; launches happen as ever."""
    changed: list[tuple[Any, Any]] = []

    def wrap(module: ModuleType) -> None:
        kernels = module.CachingAutotuner
        plain = kernels.run

        def run(kernel: Any, *args: Any, **kwargs: Any) -> Any:
            made = plain(kernel, *args, **kwargs)
            note(kernel, args)
            return made

        kernels.run = run
        changed.append((kernels, plain))

    with on_import(LAUNCHER, wrap):
        try:
            yield
        finally:
            for kernels, plain in changed:
                kernels.run = plain


@contextlib.contextmanager
def into_nothing(kind: str) -> Iterator[None]:
    """Let Inductor generate for torch's device type `kind`, on which nothing is compiled or launched."""
    from portability.checks.pretend import replaced

    def unlaunched(module: ModuleType) -> None:
        stack.enter_context(
            replaced(module.CachingAutotuner, {"precompile": lambda *_, **__: None, "run": lambda *_, **__: None})
        )

    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="portability-inductor-"))
        # What is generated for a device that is not here must not be found by a run on one that is.
        stack.enter_context(variables({"TORCHINDUCTOR_CACHE_DIR": folder, "TORCHINDUCTOR_COMPILE_THREADS": "1"}))
        stack.enter_context(on_import(LAUNCHER, unlaunched))
        stack.enter_context(kept_driver())
        for place, changed in _of_device(kind):
            stack.enter_context(replaced(place, changed))
        yield


@contextlib.contextmanager
def kept_driver() -> Iterator[None]:
    """Keep the active driver: a generated module looks for a device, and makes that active, when it is imported."""
    from portability.checks.pretend import replaced

    with contextlib.ExitStack() as stack:
        stack.enter_context(
            on_import(HELPERS, lambda m: stack.enter_context(replaced(m, {"set_driver_to_gpu": lambda: None})))
        )
        yield


def described(kernel: Any, args: Sequence[Any]) -> Iterator[tuple[Mapping[str, Any], tuple[int, ...], Any]]:
    """Yield the arguments and options by name, the grid, and the configuration, for each that is tried."""
    meta = kernel.triton_meta
    names = [n for i, n in enumerate(meta["signature"]) if i not in kernel.fn.constexprs]
    configs = kernel.configs or [launcher.config for launcher in kernel.launchers]
    for config in configs:
        given, grid = kernel._interpret_args_grid(tuple(args), config)
        made = kernel._create_compile_meta(config)
        options = {k: v for k, v in kernel._create_compile_options(config, made).items() if k in OPTIONS}
        constants = {k: v for k, v in made["constants"].items() if k in kernel.fn.arg_names}
        yield {**dict(zip(names, given, strict=False)), **constants, **options}, tuple(int(n) for n in grid), config


def compiled_from(kernel: Any) -> Any:
    """Return what a compiled kernel would say of its source: Inductor states signature and attributes itself."""
    meta = kernel.triton_meta
    attributes = next(iter(meta.get("configs", ())), {})
    return SimpleNamespace(src=SimpleNamespace(signature=meta["signature"], constants={}, attrs=attributes))


def source_of(kernel: Any) -> str:
    """Return the module that Inductor wrote. Raises `OSError` where it is gone."""
    return Path(kernel.fn.fn.__code__.co_filename).read_text(encoding="utf-8")


def _of_device(kind: str) -> Iterator[tuple[Any, Mapping[str, Any]]]:
    """Yield what a generated module asks of torch for its device."""
    import torch

    guards: Any = torch._C._dynamo.guards  # type: ignore[attr-defined]
    yield guards, {f"_empty_strided_{kind}": guards._empty_strided_cpu}
    yield torch._C, {f"_{kind}_getCurrentRawStream": lambda _: 0}
    module = getattr(torch, kind)
    yield (
        module,
        {"_DeviceGuard": module.device, "_exchange_device": lambda _: 0, "_maybe_exchange_device": lambda _: 0},
    )


@contextlib.contextmanager
def variables(wanted: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables for a while."""
    before = {n: os.environ.get(n) for n in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
