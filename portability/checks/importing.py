"""Import a file for one target, also where it asks for the device while it is imported.

A file is imported plainly first: what a library of its finds out at its own import stays in the process, for every
target. Only a file that fails so is imported where a driver of the target is active, and torch answers for its device.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from portability.backend import Backend, Limits
from portability.checks.loose import Loose, UnreadableError, load
from portability.checks.pretend import pretend, replaced
from portability.device import UNITS
from portability.ghost import driven
from portability.model import Evidence, Target


@contextlib.contextmanager
def imported(path: Path, adapter: Backend, target: Target) -> Iterator[tuple[Loose, UnreadableError | None]]:
    """Yield the imported file and, where only a device that is not here let it be imported, what it raised without.

    Raises `UnreadableError`, with `at_import`, where it cannot be imported at all.
    """
    with contextlib.ExitStack() as stack:
        try:
            with _operators(adapter, target):
                found, refused = load(path), None
        except UnreadableError as error:
            refused = error
            with contextlib.ExitStack() as there:
                (stack if target.evidence is Evidence.INTERPRETED else there).enter_context(_device(adapter, target))
                try:
                    with _operators(adapter, target):
                        found = load(path)
                except UnreadableError:
                    raise error from None
        yield found, refused


@contextlib.contextmanager
def _device(adapter: Backend, target: Target) -> Iterator[None]:
    """Let Triton and torch answer for the target's device, or for a CPU where kernels are interpreted."""
    gpu_target = getattr(adapter, "gpu_target", None)
    if target.evidence is Evidence.INTERPRETED:
        from triton.backends.compiler import GPUTarget

        with driven(GPUTarget("cpu", "cpu", 32), Limits(), kind="interpreter"):
            yield
    elif target.evidence is Evidence.COMPILED and gpu_target is not None:
        limits = adapter.limits_of(target.id)
        with driven(gpu_target(target.id), limits, limits.units or UNITS), pretend(adapter, target.id):
            yield
    else:
        yield


@contextlib.contextmanager
def _operators(adapter: Backend, target: Target) -> Iterator[None]:
    """Let operators that a file registers for the device alone take tensors that only pass for being there."""
    if target.evidence.executes or adapter.device == "cpu":
        yield
        return
    register = torch.library.custom_op

    def custom_op(*args: Any, device_types: Any = None, **kwargs: Any) -> Any:
        kinds = (device_types,) if isinstance(device_types, str) else device_types
        return register(*args, device_types=None if adapter.device in (kinds or ()) else device_types, **kwargs)

    with replaced(torch.library, {"custom_op": custom_op}):
        yield
