"""A device that is not there, for wrappers that ask for it while their kernels are only compiled.

A wrapper may allocate on "cuda", assert `x.is_cuda`, or ask for the number of multiprocessors. Under `pretend`, tensors
are on the CPU and say that they are on the device, and the device's properties are the target's limits. Nothing is
computed: what launches compiles, and that is all.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from types import SimpleNamespace
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from portability.backend import Limits


@contextlib.contextmanager
def pretend(kind: str, target: str, limits: Limits) -> Iterator[None]:
    """Let CPU tensors pass for tensors on torch's device type `kind` ("cuda"), with the properties of `target`."""
    module = getattr(torch, kind, None)
    changed = {n: f for n, f in _answers(target, limits).items() if hasattr(module, n)}
    before = {n: getattr(module, n) for n in changed}
    for name, function in changed.items():
        setattr(module, name, function)
    try:
        with _Device(kind):
            yield
    finally:
        for name, function in before.items():
            setattr(module, name, function)


class _Device(TorchFunctionMode):
    """Takes `kind` for the CPU in every argument, and the CPU for `kind` in every answer."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind
        self.asked = f"is_{kind}"

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", "")
        if name == "__get__":  # of a property: `func` is bound to it
            name = getattr(getattr(func, "__self__", None), "__name__", "")
            if name == self.asked:
                return True
            if name == "device":
                return torch.device(self.kind, 0)
        if name == self.kind:  # x.cuda()
            return args[0]
        return func(*self._here(args), **self._here(kwargs or {}))

    def _here(self, value: Any) -> Any:
        if isinstance(value, torch.device):
            return torch.device("cpu") if value.type == self.kind else value
        if isinstance(value, str):
            return "cpu" if value.partition(":")[0] == self.kind else value
        if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
            return type(value)(self._here(v) for v in value)
        if isinstance(value, dict):
            return {k: self._here(v) for k, v in value.items()}
        return value


def _answers(target: str, limits: Limits) -> Mapping[str, Callable[..., Any]]:
    """What `torch.cuda` is asked, and what the target's limits say."""
    arch = target.partition(":")[2]
    capability = divmod(int(arch), 10) if arch.isdigit() else (9, 0)
    properties = SimpleNamespace(
        name=target,
        major=capability[0],
        minor=capability[1],
        gcnArchName=arch,
        multi_processor_count=limits.units or 64,
        warp_size=limits.warp or 32,
        max_threads_per_block=limits.threads or 1024,
        max_threads_per_multi_processor=(limits.unit_warps or 64) * (limits.warp or 32),
        regs_per_multiprocessor=limits.registers or 65536,
        shared_memory_per_block=min(limits.shared_memory or 2**31, 49152),
        shared_memory_per_block_optin=limits.shared_memory or 2**31 - 1,
        shared_memory_per_multiprocessor=limits.unit_shared_memory or 2**31 - 1,
        total_memory=2**36,
        L2_cache_size=2**25,
    )
    return {
        "is_available": lambda: True,
        "device_count": lambda: 1,
        "current_device": lambda: 0,
        "set_device": lambda *_: None,
        "get_device_name": lambda *_: target,
        "get_device_capability": lambda *_: capability,
        "get_device_properties": lambda *_: properties,
        "synchronize": lambda *_: None,
        "empty_cache": lambda: None,
        "device": lambda *_: contextlib.nullcontext(),
        "current_stream": lambda *_: SimpleNamespace(cuda_stream=0, synchronize=lambda: None),
    }
