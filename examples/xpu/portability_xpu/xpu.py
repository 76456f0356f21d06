"""Intel GPUs, compiled for with no GPU: to SPIR-V by triton-xpu, and to native code where ocloc is.

triton-xpu is a package named `triton`, so its targets are opened in an environment of their own. Nothing is ever run:
evidence is `compiled` at native code and `lowered` at SPIR-V. See `lowering` for the traps between the two.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, ClassVar

from portability.backend import INTEGERS, Backend, Launch, Limits, Session, blocks_of
from portability.model import Evidence, Resources, Target
from portability_xpu import native
from portability_xpu.lowering import Device, compiling, install_driver

FLOATS = ("float32", "float16", "bfloat16")
UNSIGNED = ("uint16", "uint32", "uint64")
FLOAT8 = ("float8_e5m2", "float8_e4m3fn")

# What SYCL would say of the devices: Intel's "oneAPI GPU Optimization Guide", "Intel Xe GPU Architecture", and the
# extensions of OpenCL's `cl_intel_subgroup_matrix_multiply_accumulate` specification.
PONTE_VECCHIO = Device(
    {
        "sub_group_sizes": [16, 32], "has_fp64": True, "has_subgroup_matrix_multiply_accumulate": True,
        "has_subgroup_matrix_multiply_accumulate_tensor_float32": True, "has_subgroup_2d_block_io": True,
        "has_bfloat16_conversions": True,
    },
    "pvc", "pvc",
)  # fmt: skip
DG2 = Device(
    {
        "sub_group_sizes": [8, 16, 32], "has_fp64": False, "has_subgroup_matrix_multiply_accumulate": True,
        "has_bfloat16_conversions": True,
    },
    "dg2-g10", "dg2",
)  # fmt: skip
# Of one work-group: CL_DEVICE_LOCAL_MEM_SIZE and CL_DEVICE_MAX_WORK_GROUP_SIZE; Xe-cores of a Max 1550 and an A770.
GUIDE = "oneAPI GPU Optimization Guide 2024, Intel Xe GPU Architecture"
XE_HPC = Limits(shared_memory=131072, threads=1024, grid=(2**31 - 1,) * 3, units=128, source=GUIDE)
XE_HPG = Limits(shared_memory=65536, threads=1024, grid=(2**31 - 1,) * 3, units=32, source=GUIDE)


class XpuSession(Session):
    """An opened target: compiled for, and launched into nothing."""

    def __init__(self, target: Target, limits: Limits) -> None:
        super().__init__(target)
        self.limits = limits

    def resources(self, launch: Launch) -> Resources | None:
        """Return what the launch needs: registers and spills where ocloc says them, which it does when it spills."""
        metadata = launch.compiled.metadata
        made = getattr(launch.compiled, "native", None)
        products = "tt.dot" in launch.compiled.asm["ttir"]
        return Resources(
            launch.kernel,
            registers=made.registers if made else None,
            spills=made.spills if made else None,
            shared=metadata.shared,
            shared_limit=self.limits.shared_memory,
            threads=metadata.num_warps * metadata.threads_per_warp,
            threads_limit=self.limits.threads,
            matrix=made.matrix if made and made.assembly and products else "",
            hash=launch.hash[:16],
            config=launch.config,
        )


class Xpu(Backend):
    """Intel data-centre and discrete GPUs."""

    name = "xpu"
    environment = "xpu"
    device = "xpu"
    targets = ("xpu:pvc", "xpu:dg2")
    titles: ClassVar[Mapping[str, str]] = {"xpu:pvc": "Max 1550", "xpu:dg2": "Arc A770"}
    families: ClassVar[Mapping[str, Sequence[str]]] = {"xpu:hpc": ("xpu:pvc",), "xpu:hpg": ("xpu:dg2",)}
    dtypes: ClassVar[Mapping[str, Sequence[str]]] = {
        "*": (*FLOATS, *FLOAT8, *INTEGERS, *UNSIGNED),
        "xpu:hpc": (*FLOATS, "float64", *FLOAT8, *INTEGERS, *UNSIGNED),
    }
    limits: ClassVar[Mapping[str, Limits]] = {"xpu:hpc": XE_HPC, "xpu:hpg": XE_HPG}
    devices: ClassVar[Mapping[str, Device]] = {"xpu:pvc": PONTE_VECCHIO, "xpu:dg2": DG2}

    def prepare(self) -> None:
        """Make kernel files with `@triton.autotune` importable where Triton would look for SYCL in vain."""
        if _triton_xpu() is not None:
            install_driver(PONTE_VECCHIO)

    def status(self) -> Sequence[Target]:
        """Return the targets: compiled for where ocloc knows them, else lowered for, else unavailable."""
        return [self._status(t, _triton_xpu()) for t in self.targets]

    def _status(self, target: str, triton: Any) -> Target:
        title = self.titles[target]
        if triton is None:
            remedy = f"portability env create {self.environment}"
            return Target(target, self.name, title, why="triton-xpu is not installed", remedy=remedy)
        versions = {"triton": triton.__version__}
        if native.knows(self.devices[target].compiler):
            return Target(
                target, self.name, title, evidence=Evidence.COMPILED, why="compiled for, never run",
                versions={**versions, "ocloc": native.release()},
            )  # fmt: skip
        lack = f"this ocloc does not know {self.devices[target].compiler}" if native.program() else "no ocloc"
        return Target(
            target, self.name, title, evidence=Evidence.LOWERED, why=f"{lack}: SPIR-V, and no native code",
            remedy="apt-get install intel-opencl-icd", versions=versions,
        )  # fmt: skip

    def open(self, target: Target) -> AbstractContextManager[XpuSession]:
        """Open the target: what is launched in it is compiled, and launched into nothing."""
        return self._open(target)

    @contextlib.contextmanager
    def _open(self, target: Target) -> Iterator[XpuSession]:
        limits = self.limits_of(target.id)
        session = XpuSession(target, limits)
        to_native = target.evidence is Evidence.COMPILED
        with blocks_of(self.name, target.id), compiling(session, self.devices[target.id], limits, to_native):
            yield session


def _triton_xpu() -> Any:
    """Return the module `triton` where it is triton-xpu's."""
    try:
        import triton
        from triton.backends import backends
    except ImportError:
        return None
    return triton if "intel" in backends else None
