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
from typing import TYPE_CHECKING, Any

from portability.checks.pretend import replaced
from portability.record import describing
from portability.record.counting import Counting
from portability.record.imports import on_import
from portability.record.model import Call
from portability.record.tracing import scripted, traced_nowhere

if TYPE_CHECKING:
    from portability.record.recorder import Recorder

LAUNCHER = "torch._inductor.runtime.triton_heuristics"
HELPERS = "torch._inductor.runtime.triton_helpers"
# Launch options that mean the same on every target; the others Inductor chooses for each device anew.
OPTIONS = ("num_warps", "num_stages", "debug", "sanitize_overflow", "enable_fp_fusion")


@contextlib.contextmanager
def noted(recorder: Recorder) -> Iterator[None]:
    """Tell the recorder of each launch of a generated kernel; launches happen as ever."""
    with contextlib.ExitStack() as stack:

        def wrap(module: ModuleType) -> None:
            kernels = module.CachingAutotuner
            stack.enter_context(replaced(kernels, {"run": _launching(recorder, kernels.run)}))

        stack.enter_context(on_import(LAUNCHER, wrap))
        try:
            yield
        finally:
            for counting in recorder.counting:
                counting.settle()
                counting.detach()
            recorder.counting.clear()


def _launching(recorder: Recorder, plain: Callable[..., Any]) -> Callable[..., Any]:
    def run(kernel: Any, *args: Any, **kwargs: Any) -> Any:
        made = plain(kernel, *args, **kwargs)
        entry = recorder.note_generated(kernel, args)
        alone = len(kernel.launchers) == 1 and type(kernel).run is run  # tuned, and by nobody's subclass
        if alone and not any(counting.kernel is kernel for counting in recorder.counting):
            recorder.counting.append(Counting(recorder, kernel, plain, args, entry))
        return made

    return run


@contextlib.contextmanager
def into_nothing(kind: str) -> Iterator[None]:
    """Let Inductor generate for torch's device type `kind`, on which nothing is compiled or launched."""

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
        stack.enter_context(traced_nowhere(kind))
        stack.enter_context(scripted())
        for place, changed in _of_device(kind):
            stack.enter_context(replaced(place, changed))
        yield


@contextlib.contextmanager
def kept_driver() -> Iterator[None]:
    """Keep the active driver: a generated module looks for a device, and makes that active, when it is imported."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(
            on_import(HELPERS, lambda m: stack.enter_context(replaced(m, {"set_driver_to_gpu": lambda: None})))
        )
        yield


def calls(kernel: Any, args: Sequence[Any]) -> Iterator[tuple[Call, tuple[int, ...]]]:
    """Yield the record of a launch and its grid, for each configuration that Inductor would try."""
    meta, fn = kernel.triton_meta, kernel.fn
    names = [n for i, n in enumerate(meta["signature"]) if i not in fn.constexprs]
    configs = kernel.configs or [launcher.config for launcher in kernel.launchers]
    # Inductor states signature and attributes itself.
    source = SimpleNamespace(signature=meta["signature"], constants={}, attrs=next(iter(meta.get("configs", ())), {}))
    text = Path(fn.fn.__code__.co_filename).read_text(encoding="utf-8")
    for config in configs:
        given, grid = kernel._interpret_args_grid(tuple(args), config)
        made = kernel._create_compile_meta(config)
        options = {k: v for k, v in kernel._create_compile_options(config, made).items() if k in OPTIONS}
        constants = {k: v for k, v in made["constants"].items() if k in fn.arg_names}
        several = {"config": str(config), "tuning": describing.digest(fn)} if len(configs) > 1 else {}
        named = {**dict(zip(names, given, strict=False)), **constants}
        yield (
            describing.call(fn, named, options, source, origin="inductor", source=text, **several),
            tuple(int(n) for n in grid),
        )


def _of_device(kind: str) -> Iterator[tuple[Any, Mapping[str, Any]]]:
    """Yield what a generated module asks of torch for its device."""
    import torch

    guards: Any = torch._C._dynamo.guards

    def cleared(*args: Any) -> Any:  # only a kernel would write it: an index made of it is in bounds
        return guards._empty_strided_cpu(*args).zero_()

    yield guards, {f"_empty_strided_{kind}": cleared}
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
