"""Ascend: lowered for on every machine with triton-ascend, and run on where torch_npu finds an NPU.

triton-ascend is a package named `triton`, so its targets are opened in an environment of their own. Without an NPU a
kernel is lowered through `frontend`, `ttadapter` and `hivm` (see `_ascend_lowering`), which stops short of a binary.

Running on an NPU follows the documentation of torch_npu and triton-ascend 3.2.0 and was never seen on hardware.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar

from portability import timing
from portability.backend import INTEGERS, Backend, Launch, Limits, Session, blocks_of
from portability.backends import _ascend_hivm as hivm
from portability.backends import _ascend_lowering as lower
from portability.backends._ascend_npu import Npu, npu
from portability.device import Device, NotHereError
from portability.kernel import Cost
from portability.model import Evidence, Resources, Target, Timing

# The memories of one AI core: `dlti.target_system_spec` that AscendNPU IR 1.2.0 states for the target. The grid:
# triton-ascend 3.2.0, `JITFunction.run`; an empty one is refused by the runtime's launch.
A2 = Limits(
    grid=(2**31 - 1,) * 3, grid_total=65535, grid_empty=False,
    buffers={"UB": 196608, "L1": 524288, "L0C": 131072}, units=20, source="AscendNPU IR 1.2.0, triton-ascend 3.2.0",
)  # fmt: skip
OTHER = replace(A2, buffers={}, units=None)  # a later core has other memories; AscendNPU IR knows them, we do not

# Asked in a process of its own: the name of an NPU cannot be read without a context on it.
PROBE = """
import json, torch, torch_npu
found = [torch.npu.get_device_properties(i) for i in range(torch.npu.device_count())]
print(json.dumps([[p.name, p.total_memory] for p in found]))
"""
PROBE_LIMIT = 120.0  # seconds: the first context on a machine's NPUs


class AscendSession(Session):
    """An opened target: on its NPU, or lowered for."""

    def __init__(self, target: Target, limits: Limits) -> None:
        super().__init__(target)
        self.limits = limits

    def synchronize(self) -> None:
        """Wait for the NPU; raises torch_npu's error where a launch failed on it."""
        if self.target.evidence is Evidence.RAN:
            npu().synchronize()

    def resources(self, launch: Launch) -> Resources | None:
        """Return the memory that AscendNPU IR planned for the launch; shared memory is the unified buffer."""
        plan = getattr(launch.compiled, "plan", None)
        if plan is None or not plan.buffers:
            return None
        core = launch.compiled.metadata.mix_mode
        return Resources(
            launch.kernel,
            shared=plan.buffers.get("UB", 0),
            shared_limit=self.limits.buffers.get("UB"),
            buffers={k: v for k, v in plan.buffers.items() if k != "UB"},
            matrix="cube" if core != "aiv" else "scalar",
            hash=launch.hash[:16],
            config=launch.config,
        )


class Ascend(Backend):
    """Huawei Ascend, Atlas A2 and A3."""

    name = "ascend"
    environment = "ascend"
    device = "npu"
    targets = ("npu:Ascend910B3",)
    titles: ClassVar[Mapping[str, str]] = {"npu:Ascend910B3": "Ascend 910B3"}
    families: ClassVar[Mapping[str, Sequence[str]]] = {"npu:a2": targets}
    # Seen by lowering load, conversion and store of each: triton-ascend 3.2.0 refuses float64 and float8 by name.
    dtypes: ClassVar[Mapping[str, Sequence[str]]] = {"*": ("float32", "float16", "bfloat16", *INTEGERS)}
    limits: ClassVar[Mapping[str, Limits]] = {"npu:a2": A2, "*": OTHER}
    guard: ClassVar[int] = 4096

    def prepare(self) -> None:
        """Make kernel files with `@triton.autotune` importable where Triton would look for an NPU's driver in vain."""
        if _triton_ascend() is not None and importlib.util.find_spec("torch_npu") is None:
            lower.install_driver(_arch(self.targets[0]))

    def status(self) -> Sequence[Target]:
        """Return the targets that run here, one for each kind of NPU, then those that are lowered for."""
        triton = _triton_ascend()
        if triton is None:
            why, remedy = "triton-ascend is not installed", f"portability env create {self.environment}"
            return [Target(t, self.name, self.titles.get(t, ""), why=why, remedy=remedy) for t in self.targets]
        versions = _versions(triton)
        found, lack = self._here
        first = {d.target: d for d in reversed(found)}
        runs = [
            Target(
                t, self.name, self.titles.get(t, d.name), evidence=Evidence.RAN,
                device=d.name, index=d.index, memory=d.memory, versions=versions,
            )
            for t, d in sorted(first.items(), key=lambda item: item[1].index)
        ]  # fmt: skip
        stages = "frontend, ttadapter and hivm" if hivm.compiler() else "frontend and ttadapter"
        lowered = [
            Target(
                t, self.name, self.titles.get(t, ""), evidence=Evidence.LOWERED,
                why=f"{lack.why}: lowered through {stages}, short of npubin", remedy=lack.remedy, versions=versions,
            )
            for t in self.targets if t not in first
        ]  # fmt: skip
        return runs + lowered

    def open(self, target: Target) -> AbstractContextManager[AscendSession]:
        """Open the target on its NPU where its evidence is `ran`; else lower for it and launch nothing."""
        return self._open(target)

    @contextlib.contextmanager
    def _open(self, target: Target) -> Iterator[AscendSession]:
        limits = self.limits_of(target.id)
        session = AscendSession(target, limits)
        with contextlib.ExitStack() as stack:
            stack.enter_context(blocks_of(self.name, target.id))
            if target.evidence is Evidence.RAN:
                stack.enter_context(timing.device_lock(_lock(target), exclusive=False))
                stack.enter_context(npu().device(target.index or 0))
                stack.enter_context(lower.recording(session))
            else:
                stack.enter_context(lower.lowering(session, _arch(target.id), limits))
            yield session

    def measure(
        self,
        target: Target,
        call: Callable[[], None],
        torch_call: Callable[[], Any],
        cost: Cost | None,
        warmup_ms: float,
        rep_ms: float,
    ) -> Timing:
        """Return the time of `call`, alone on the NPU. To be called outside of `open`, which shares it."""
        import torch

        index = target.index or 0
        with timing.device_lock(_lock(target), exclusive=True), npu().device(index), torch.no_grad():
            return timing.measure(Npu(index), call, torch_call, cost, warmup_ms, rep_ms)

    def devices(self) -> Sequence[Device]:
        """Return the NPUs that torch_npu shows in its order. Raises `NotHereError` if there is none."""
        machine = "a machine with an NPU, its CANN and torch_npu, named in [environments.ascend]"
        if importlib.util.find_spec("torch_npu") is None:
            raise NotHereError("no torch_npu", machine)
        try:
            asked = subprocess.run(
                [sys.executable, "-c", PROBE], capture_output=True, text=True, timeout=PROBE_LIMIT, check=False
            )
        except subprocess.TimeoutExpired:
            raise NotHereError(f"torch_npu does not answer within {PROBE_LIMIT:g} s", "npu-smi info") from None
        if asked.returncode != 0:
            said = (asked.stderr.strip().splitlines() or [f"exit code {asked.returncode}"])[-1]
            raise NotHereError(f"torch_npu does not start ({said})", "npu-smi info")
        found = json.loads(asked.stdout.splitlines()[-1])
        if not found:
            raise NotHereError("torch_npu shows no NPU", "an ASCEND_RT_VISIBLE_DEVICES that names one")
        return [Device(i, f"npu:{name}", name, memory) for i, (name, memory) in enumerate(found)]

    def device_target(self, ordinal: int) -> str:
        """Return the target id of torch_npu's device `ordinal`. Raises `LookupError` where there is none."""
        found, lack = self._here
        for d in found:
            if d.index == ordinal:
                return d.target
        raise LookupError(f"{self.name}: no NPU {ordinal} here: {lack.why}")

    def families_of(self, target: str) -> list[str]:
        """Return the target's families; every 910B and 910_93 has the cores of the A2."""
        return ["npu:a2"] if target.startswith(("npu:Ascend910B", "npu:Ascend910_93")) else []

    @cached_property
    def _here(self) -> tuple[Sequence[Device], NotHereError]:
        """The NPUs of this machine, and why the other targets are only lowered for."""
        try:
            return self.devices(), NotHereError("no NPU of this kind", "a machine that has one")
        except NotHereError as lack:
            return (), lack


def _lock(target: Target) -> str:
    """Name the NPU for every process of this machine. Its ordinal: a process that sees other NPUs waits in vain."""
    return f"ascend-{target.index or 0}"


def _arch(target: str) -> str:
    return target.partition(":")[2]


def _triton_ascend() -> Any:
    """Return the module `triton` where it is triton-ascend's."""
    try:
        import triton
        from triton.backends import backends
    except ImportError:
        return None
    return triton if "ascend" in backends else None


def _versions(triton: Any) -> dict[str, str]:
    import torch

    found = {"torch": torch.__version__, "triton": triton.__version__, hivm.DISTRIBUTION: hivm.release()}
    return {name: version for name, version in found.items() if version}
