"""What torch's modules answer of a device that is not there: its properties are a target's limits."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from types import SimpleNamespace
from typing import Any

import torch

from portability.backend import Limits

MEMORY = 2**36  # bytes: no launch is refused for want of it
VERSIONS = {"cuda": "13.0", "hip": "7.0.0"}  # of the runtime that a torch for such a device is built with


def answers(kind: str, target: str, limits: Limits, runtime: str) -> Iterator[tuple[Any, Mapping[str, Any]]]:
    """Yield each module with what it answers; names that this torch lacks are left out."""
    module = getattr(torch, kind, None)
    if module is not None:
        yield module, _known(module, _module(kind, target, limits))
    accelerator = getattr(torch, "accelerator", None)
    if accelerator is not None:
        yield accelerator, _known(accelerator, _accelerator(kind, _capability(target)))
    if runtime:
        yield torch.version, {name: VERSIONS.get(name, "1.0") if name == runtime else None for name in ("cuda", "hip")}
    yield torch, {"Generator": _Generator, "set_default_device": lambda _: None}


def _known(module: Any, answered: Mapping[str, Any]) -> dict[str, Any]:
    return {n: f for n, f in answered.items() if hasattr(module, n)}


def _capability(target: str) -> tuple[int, int]:
    """Return NVIDIA's compute capability; ROCm's torch gives that of "gfx942" as (9, 4)."""
    arch = target.partition(":")[2]
    if arch.isdigit():
        return divmod(int(arch), 10)
    digits = arch.removeprefix("gfx")
    return (int(digits[:-2]), int(digits[-2], 16)) if digits[:-2].isdigit() else (9, 0)


def _module(kind: str, target: str, limits: Limits) -> dict[str, Any]:
    """What `torch.cuda` is asked, and what the target's limits say."""
    stream = _stream_of(kind)
    properties, capability = _properties(target, limits), _capability(target)
    zero = ("memory_allocated", "memory_reserved", "max_memory_allocated", "max_memory_reserved", "initial_seed")
    nothing = (
        "set_device", "synchronize", "empty_cache", "init", "_lazy_init", "manual_seed", "manual_seed_all",
        "set_stream", "reset_peak_memory_stats", "reset_max_memory_allocated", "ipc_collect", "seed", "seed_all",
        "set_rng_state",
    )  # fmt: skip
    return {
        **{n: lambda *_, **__: 0 for n in zero},
        **{n: lambda *_, **__: None for n in nothing},
        "is_available": lambda: True,
        "is_initialized": lambda: True,
        "is_bf16_supported": lambda *_, **__: True,
        "is_current_stream_capturing": lambda: False,
        "device_count": lambda: 1,
        "current_device": lambda: 0,
        "get_device_name": lambda *_: target,
        "get_device_capability": lambda *_: capability,
        "get_device_properties": lambda *_: properties,
        "get_arch_list": lambda: [target.partition(":")[2]],
        "mem_get_info": lambda *_: (MEMORY, MEMORY),
        "memory_stats": lambda *_: {},
        "get_rng_state": lambda *_: torch.get_rng_state(),
        "device": _Device,
        "device_of": _Device,
        "stream": _Device,
        "graph": _Device,
        "CUDAGraph": _Graph,
        "Stream": stream,
        "Event": _Event,
        "current_stream": lambda *_: stream(),
        "default_stream": lambda *_: stream(),
        "default_generators": (_Philox(),),
    }


def _accelerator(kind: str, capability: tuple[int, int]) -> dict[str, Any]:
    return {
        "is_available": lambda: True,
        "device_count": lambda: 1,
        "current_accelerator": lambda *_, **__: torch.device(kind),
        "current_device_index": lambda: 0,
        "current_device_idx": lambda: 0,
        "set_device_index": lambda *_: None,
        "set_device_idx": lambda *_: None,
        "current_stream": lambda *_: _stream_of(kind)(),
        "synchronize": lambda *_: None,
        "empty_cache": lambda *_: None,
        "get_memory_info": lambda *_: (MEMORY, MEMORY),
        "get_device_capability": lambda *_: capability,
    }


def _properties(target: str, limits: Limits) -> SimpleNamespace:
    major, minor = _capability(target)
    warp = limits.warp or 32
    return SimpleNamespace(
        name=target,
        major=major,
        minor=minor,
        gcnArchName=target.partition(":")[2],
        multi_processor_count=limits.units or 64,
        warp_size=warp,
        max_threads_per_block=limits.threads or 1024,
        max_threads_per_multi_processor=(limits.unit_warps or 64) * warp,
        regs_per_multiprocessor=limits.registers or 65536,
        shared_memory_per_block=min(limits.shared_memory or 2**31, 49152),
        shared_memory_per_block_optin=limits.shared_memory or 2**31 - 1,
        shared_memory_per_multiprocessor=limits.unit_shared_memory or 2**31 - 1,
        total_memory=MEMORY,
        L2_cache_size=2**25,
        is_integrated=0,
        uuid="00000000-0000-0000-0000-000000000000",
    )


class _Device(contextlib.ContextDecorator, contextlib.nullcontext):  # type: ignore[type-arg]
    """A device or stream that is entered and left."""

    def __init__(self, *_: Any) -> None:
        contextlib.nullcontext.__init__(self, self)
        self.idx, self.prev_idx = 0, -1


class _Stream(_Device):
    """A stream on which nothing waits."""

    device = torch.device("cpu")
    cuda_stream = stream_id = device_index = device_type = priority = 0

    def query(self) -> bool:
        """Everything has ended."""
        return True

    def is_capturing(self) -> bool:
        """No graph is captured."""
        return False

    def synchronize(self, *_: Any) -> None:
        """Nothing to wait for."""

    wait_event = wait_stream = synchronize

    def record_event(self, event: Any = None) -> Any:
        """Return an event that has come."""
        return event or _Event()


def _stream_of(kind: str) -> type[_Stream]:
    """Return the class of streams on a device of that kind."""
    return type("Stream", (_Stream,), {"device": torch.device(kind, 0)})


class _Event:
    """An event that has come."""

    def __init__(self, *_: Any, **__: Any) -> None:
        self.cuda_event = 0

    def record(self, *_: Any) -> None:
        """Nothing to wait for."""

    wait = synchronize = record

    def query(self) -> bool:
        """It has come."""
        return True

    def elapsed_time(self, *_: Any) -> float:
        """One millisecond: no measure of anything, and nobody divides by zero."""
        return 1.0


class _Graph:
    """A graph of launches: what is captured was launched, into nothing, already."""

    def __init__(self, *_: Any, **__: Any) -> None:
        self.captured = True

    def replay(self, *_: Any, **__: Any) -> None:
        """Nothing to launch again."""

    capture_begin = capture_end = reset = pool = replay


class _Generator(torch.Generator):
    """A generator on the CPU, wherever it is asked for."""

    def __new__(cls, *_: Any, **__: Any) -> _Generator:
        """Return one."""
        return super().__new__(cls, "cpu")  # type: ignore[call-arg]

    def __init__(self, *_: Any, **__: Any) -> None:
        super().__init__()


class _Philox:
    """A device's default generator: seed and offset, which a library with random numbers of its own reads and moves."""

    device = torch.device("cpu")

    def __init__(self) -> None:
        self._state = torch.zeros(2, dtype=torch.int64).view(torch.uint8)

    def get_state(self) -> torch.Tensor:
        """Return seed and offset, as bytes."""
        return self._state.clone()

    def set_state(self, state: torch.Tensor) -> None:
        """Go on from there."""
        self._state = state.clone()
