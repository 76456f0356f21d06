"""AMD GPUs: compiled for on every machine, and run on where torch is built for ROCm and sees one.

Running on AMD hardware has not been seen: the path is the one that runs on NVIDIA, with ROCm's torch.

Devices are read from the kernel driver's topology (`/sys/class/kfd`), which opens nothing; the variables that hide
devices are applied as the ROCm runtime applies them, so that the ordinals are torch's.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from portability.backend import FLOATS, INTEGERS, Limits
from portability.device import UNSIGNED, Device, DeviceBackend, NotHereError

# Registers, granules, waves and barriers of a compute unit: LLVM, AMDGPUBaseInfo.cpp (getTotalNumVGPRs,
# getVGPRAllocGranule, getMaxWavesPerEU, getEUsPerCU, getMaxWorkGroupsPerCU, getLocalMemorySize, getLdsDwGranularity).
# The compute unit of RDNA is its work-group processor (two CUs), the mode that Triton compiles for. Grids: HIP's
# documentation of hipModuleLaunchKernel (threads along an axis below 2³²) and of maxGridSize. Compute units: the
# vendor's data sheet of the first card in `titles`; of MI250X one of its two dies, which is one device.
LLVM = "LLVM AMDGPUBaseInfo.cpp; HIP hipModuleLaunchKernel"
CDNA2 = Limits(
    shared_memory=65536, threads=1024, warp=64, grid_threads=2**32 - 1, registers=4 * 512 * 64, register_granule=8,
    unit_shared_memory=65536, unit_warps=32, unit_barriers=16, shared_granule=512, units=110, source=LLVM,
)  # fmt: skip
CDNA3 = replace(CDNA2, units=304)
CDNA4 = replace(CDNA2, shared_memory=163840, unit_shared_memory=163840, shared_granule=1280, units=256)
RDNA3 = replace(
    CDNA2, warp=32, registers=4 * 1536 * 32, register_granule=24, unit_shared_memory=131072,
    unit_warps=64, unit_barriers=32, units=48,
)  # fmt: skip
CDNA5 = replace(
    CDNA2, warp=32, shared_memory=327680, registers=4 * 1024 * 32, register_granule=16, unit_shared_memory=327680,
    unit_warps=64, shared_granule=2048, units=None,
)  # fmt: skip

FP8 = ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz")
TOPOLOGY = Path("/sys/class/kfd/kfd/topology/nodes")


class Rocm(DeviceBackend):
    """AMD, CDNA 2 and newer, RDNA 3 and newer."""

    name = "rocm"
    compiler = "amd"
    runtime = "hip"
    cache_bytes = 2**28  # MI300X's Infinity Cache, behind the second-level cache that is reported
    torch_index = "https://download.pytorch.org/whl/rocm7.0"
    targets = ("hip:gfx90a", "hip:gfx942", "hip:gfx950", "hip:gfx1100", "hip:gfx1201", "hip:gfx1250")
    titles: ClassVar[Mapping[str, str]] = {
        "hip:gfx90a": "MI250X", "hip:gfx942": "MI300X", "hip:gfx950": "MI355X", "hip:gfx1100": "RX 7900",
        "hip:gfx1201": "RX 9070", "hip:gfx1250": "MI455X",
    }  # fmt: skip
    families: ClassVar[Mapping[str, Sequence[str]]] = {
        "hip:cdna2": ("hip:gfx90a",),
        "hip:cdna3": ("hip:gfx940", "hip:gfx941", "hip:gfx942"),
        "hip:cdna4": ("hip:gfx950",),
        "hip:cdna5": ("hip:gfx1250", "hip:gfx1251"),
        "hip:rdna3": ("hip:gfx1100", "hip:gfx1101", "hip:gfx1102", "hip:gfx1103"),
        "hip:rdna3.5": ("hip:gfx1150", "hip:gfx1151", "hip:gfx1152", "hip:gfx1153"),
        "hip:rdna4": ("hip:gfx1200", "hip:gfx1201"),
        "hip:cdna": ("hip:gfx90a", "hip:gfx940", "hip:gfx941", "hip:gfx942", "hip:gfx950"),  # waves of 64, MFMA
        "hip:rdna": (
            "hip:gfx1100", "hip:gfx1101", "hip:gfx1102", "hip:gfx1103", "hip:gfx1150", "hip:gfx1151", "hip:gfx1152",
            "hip:gfx1153", "hip:gfx1200", "hip:gfx1201",
        ),  # waves of 32, WMMA, 64 KiB
    }  # fmt: skip
    # Seen by compiling load, store, conversion both ways and `dot` of each on every target, Triton 3.9. Formats that
    # an architecture lacks are converted in software, and so accepted.
    dtypes: ClassVar[Mapping[str, Sequence[str]]] = {"*": (*FLOATS, *INTEGERS, *UNSIGNED, *FP8)}
    limits: ClassVar[Mapping[str, Limits]] = {
        "hip:cdna2": CDNA2,
        "hip:cdna3": CDNA3,
        "hip:cdna4": CDNA4,
        "hip:cdna5": CDNA5,
        "hip:rdna3": RDNA3,
        "hip:gfx1102": replace(RDNA3, registers=4 * 1024 * 32, register_granule=16, units=16),
        "hip:gfx1103": replace(RDNA3, registers=4 * 1024 * 32, register_granule=16, units=6),
        "hip:rdna3.5": replace(RDNA3, registers=4 * 1024 * 32, register_granule=16, units=8),
        "hip:gfx1151": replace(RDNA3, units=20),
        "hip:rdna4": replace(RDNA3, units=32),
    }

    def devices(self) -> Sequence[Device]:
        """Return the devices of the kernel's topology that the environment does not hide."""
        found = visible_devices(read_topology(TOPOLOGY), os.environ)
        if not found:
            raise NotHereError("no device", "a machine with an AMD GPU, its driver, and torch built for ROCm")
        return found

    def gpu_target(self, target: str) -> Any:
        """Return `GPUTarget("hip", "gfx942", 64)` for "hip:gfx942"."""
        from triton.backends.compiler import GPUTarget

        return GPUTarget("hip", target.split(":")[1], self.limits_of(target).warp)


@dataclass(frozen=True)
class Node:
    """A GPU of the kernel's topology: architecture, codename, bytes of memory, the runtime's "GPU-…" name."""

    arch: str
    name: str
    memory: int
    uuid: str


def read_topology(nodes: Path) -> Sequence[Node]:
    """Return the GPUs below `nodes` (`/sys/class/kfd/kfd/topology/nodes`) in the runtime's order.

    Nodes that this process may not read are those that its container was not given.
    """
    found = []
    for folder in sorted(nodes.glob("[0-9]*"), key=lambda p: int(p.name)):
        try:
            properties = _properties(folder / "properties")
            banks = [_properties(p).get("size_in_bytes", 0) for p in folder.glob("mem_banks/*/properties")]
            name = (folder / "name").read_text().strip()
        except PermissionError:
            continue
        version = properties.get("gfx_target_version", 0)
        if version:  # 0 is a CPU
            unique = properties.get("unique_id", 0)
            found.append(Node(architecture(version), name, sum(banks), f"GPU-{unique:016x}" if unique else ""))
    return found


def architecture(version: int) -> str:
    """Return "gfx90a" for 90010, the decimal `major · 10000 + minor · 100 + stepping` of the kernel's topology."""
    return f"gfx{version // 10000}{version // 100 % 100:x}{version % 100:x}"


def visible_devices(nodes: Sequence[Node], environment: Mapping[str, str]) -> Sequence[Device]:
    """Return what ROCm shows of `nodes`: ROCR_VISIBLE_DEVICES first, then HIP_VISIBLE_DEVICES of what is left.

    CUDA_VISIBLE_DEVICES stands for the latter where that is not set. HSA_OVERRIDE_GFX_VERSION ("11.0.0") renames the
    architecture, as the runtime does. See ROCm's documentation, "GPU isolation techniques".
    """
    left = _select(nodes, environment.get("ROCR_VISIBLE_DEVICES"))
    left = _select(left, environment.get("HIP_VISIBLE_DEVICES", environment.get("CUDA_VISIBLE_DEVICES")))
    override = environment.get("HSA_OVERRIDE_GFX_VERSION")
    if override:
        major, minor, stepping = (int(n) for n in override.split("."))
        left = [replace(n, arch=architecture(major * 10000 + minor * 100 + stepping)) for n in left]
    return [Device(i, f"hip:{n.arch}", n.name, n.memory, n.uuid) for i, n in enumerate(left)]


def _select(nodes: Sequence[Node], listed: str | None) -> Sequence[Node]:
    """Return the nodes that a list of ordinals and "GPU-…" names selects; the first invalid entry ends the list."""
    if listed is None:
        return nodes
    chosen = []
    for entry in (e.strip() for e in listed.split(",")):
        named = [n for n in nodes if n.uuid and n.uuid == entry]
        if entry.isdigit() and int(entry) < len(nodes):
            named = [nodes[int(entry)]]
        if not named:
            break
        chosen += named
    return chosen


def _properties(file: Path) -> dict[str, int]:
    pairs = (line.split() for line in file.read_text().splitlines())
    return {key: int(value) for key, value in (p for p in pairs if len(p) == 2) if value.isdigit()}
