"""A driver with no device: Triton compiles for its target, its launch checks run, and launches go into nothing.

What is touched of Triton, 3.6 to 3.9: `triton.runtime.driver._active`, which is put back on leaving.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

from portability.backend import Limits


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
