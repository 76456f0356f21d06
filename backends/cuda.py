"""NVIDIA GPUs: run on where one is visible, and compiled for on every machine.

Devices are read from the CUDA driver by `cuInit`, `cuDeviceGet` and `cuDeviceGetAttribute`. None of these creates a
context, and their ordinals are torch's, since the driver itself applies `CUDA_VISIBLE_DEVICES` and MIG.
"""

from __future__ import annotations

import ctypes
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from portability.backend import FLOATS, INTEGERS, Limits
from portability.device import UNSIGNED, Device, DeviceBackend, NotHereError

# Shared memory, registers, warps and blocks of a multiprocessor: CUDA Programming Guide 13, appendix "Compute
# Capabilities", table "Technical Specifications per Compute Capability". Granules, partitions and the reserved
# kilobyte: `cuda_occupancy.h` of CUDA 13. Multiprocessors: the vendor's data sheet of the first card in `titles`.
GUIDE = "CUDA Programming Guide 13, Compute Capabilities; cuda_occupancy.h"
TURING = Limits(
    shared_memory=65536, threads=1024, warp=32, registers=65536, register_granule=8,
    unit_shared_memory=65536, unit_warps=32, unit_blocks=16, shared_granule=256, units=40, source=GUIDE,
)  # fmt: skip
AMPERE = replace(
    TURING, shared_memory=166912, unit_shared_memory=167936, unit_warps=64, unit_blocks=32,
    shared_granule=128, shared_reserved=1024, units=108,
)  # fmt: skip
GA10X = replace(AMPERE, shared_memory=101376, unit_shared_memory=102400, unit_warps=48, unit_blocks=16, units=72)
ADA = replace(GA10X, unit_blocks=24, units=58)
HOPPER = replace(AMPERE, shared_memory=232448, unit_shared_memory=233472, units=132)
BLACKWELL = replace(HOPPER, tensor_memory=512, units=148)

FP8 = ("float8_e5m2", "float8_e4m3fn")
INIT_NO_DEVICE = 100  # CUDA_ERROR_NO_DEVICE
CAPABILITY = (75, 76)  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, _MINOR


class Cuda(DeviceBackend):
    """NVIDIA, compute capability 7.5 and newer."""

    name = "cuda"
    compiler = "nvidia"
    runtime = "cuda"
    torch_index = "https://download.pytorch.org/whl/cu130"
    targets = ("cuda:75", "cuda:80", "cuda:86", "cuda:89", "cuda:90", "cuda:100", "cuda:120")
    titles: ClassVar[Mapping[str, str]] = {
        "cuda:75": "T4", "cuda:80": "A100", "cuda:86": "A10, RTX 30", "cuda:87": "Orin", "cuda:89": "L4, RTX 40",
        "cuda:90": "H100, H200", "cuda:100": "B200", "cuda:103": "B300", "cuda:110": "Thor", "cuda:120": "RTX 50",
        "cuda:121": "GB10",
    }  # fmt: skip
    families: ClassVar[Mapping[str, Sequence[str]]] = {
        "cuda:turing": ("cuda:75",),
        "cuda:ampere": ("cuda:80", "cuda:86", "cuda:87", "cuda:88"),
        "cuda:ada": ("cuda:89",),
        "cuda:hopper": ("cuda:90",),
        "cuda:blackwell": ("cuda:100", "cuda:101", "cuda:103", "cuda:110"),
        "cuda:blackwell-rtx": ("cuda:120", "cuda:121"),
    }
    # Seen by compiling load, store, conversion both ways and `dot` of each on every target, Triton 3.9. float8_e4m3fn
    # needs 8.9 and the fnuz formats are AMD's: Triton refuses them by name.
    dtypes: ClassVar[Mapping[str, Sequence[str]]] = {
        "*": (*FLOATS, *INTEGERS, *UNSIGNED, "float8_e5m2"),
        "cuda:ada": (*FLOATS, *INTEGERS, *UNSIGNED, *FP8),
        "cuda:hopper": (*FLOATS, *INTEGERS, *UNSIGNED, *FP8),
        "cuda:blackwell": (*FLOATS, *INTEGERS, *UNSIGNED, *FP8),
        "cuda:blackwell-rtx": (*FLOATS, *INTEGERS, *UNSIGNED, *FP8),
    }
    limits: ClassVar[Mapping[str, Limits]] = {
        "cuda:turing": TURING,
        "cuda:ampere": AMPERE,
        "cuda:86": GA10X,
        "cuda:87": replace(AMPERE, unit_warps=48, unit_blocks=16, units=16),
        "cuda:88": GA10X,
        "cuda:ada": ADA,
        "cuda:hopper": HOPPER,
        "cuda:blackwell": BLACKWELL,
        "cuda:101": replace(BLACKWELL, unit_warps=48, unit_blocks=24, units=20),
        "cuda:110": replace(BLACKWELL, unit_warps=48, unit_blocks=24, units=20),
        "cuda:blackwell-rtx": replace(ADA, units=170),
        "cuda:121": replace(ADA, units=48),
    }

    def devices(self) -> Sequence[Device]:
        """Return the devices that the CUDA driver shows to this process."""
        machine = "a machine with an NVIDIA GPU and its driver"
        try:
            driver = ctypes.CDLL("libcuda.so.1")
        except OSError:
            raise NotHereError("no device", machine) from None
        return enumerate_devices(driver)

    def gpu_target(self, target: str) -> Any:
        """Return `GPUTarget("cuda", 90, 32)` for "cuda:90"."""
        from triton.backends.compiler import GPUTarget

        return GPUTarget("cuda", int(target.split(":")[1]), 32)

    def families_of(self, target: str) -> list[str]:
        """Return the target's families; an architecture in none has those of the newest known one before it."""
        known = {int(member.split(":")[1]) for members in self.families.values() for member in members}
        arch = target.partition(":")[2]
        if not arch.isdigit():
            return []
        nearest = max((a for a in known if a <= int(arch)), default=min(known))
        return super().families_of(f"cuda:{nearest}")


def enumerate_devices(driver: Any) -> Sequence[Device]:
    """Return the devices that `driver` (libcuda) shows. Raises `NotHereError` if it fails or shows none."""
    code = driver.cuInit(0)
    count = ctypes.c_int(0)
    if code not in (0, INIT_NO_DEVICE):
        raise NotHereError(f"the CUDA driver does not start (cuInit gives {code})", "nvidia-smi, which names the fault")
    if code == 0:
        driver.cuDeviceGetCount(ctypes.byref(count))
    if not count.value:
        raise NotHereError("the CUDA driver shows no device", "a CUDA_VISIBLE_DEVICES that names one")
    return [_describe(driver, index) for index in range(count.value)]


def _describe(driver: Any, index: int) -> Device:
    handle, number, memory = ctypes.c_int(0), ctypes.c_int(0), ctypes.c_size_t(0)
    name, unique = ctypes.create_string_buffer(128), ctypes.create_string_buffer(16)
    driver.cuDeviceGet(ctypes.byref(handle), index)
    capability = []
    for attribute in CAPABILITY:
        driver.cuDeviceGetAttribute(ctypes.byref(number), attribute, handle)
        capability.append(number.value)
    driver.cuDeviceGetName(name, len(name), handle)
    driver.cuDeviceTotalMem_v2(ctypes.byref(memory), handle)
    driver.cuDeviceGetUuid(unique, handle)
    target = "cuda:{}{}".format(*capability)
    return Device(index, target, name.value.decode(), memory.value, str(uuid.UUID(bytes=unique.raw)))
