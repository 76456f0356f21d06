"""What adapters of GPUs share: devices that torch runs on, and Triton's own compiler for the others.

An adapter that extends `DeviceBackend` states its targets, limits and dtypes as data, and says which devices are
visible. Where one is of a target's architecture, the target runs on it; elsewhere Triton compiles for the target.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

from portability.backend import Backend, Launch, Limits, Session, blocks_of
from portability.kernel import Cost
from portability.model import Evidence, Resources, Target, Timing

UNSIGNED = ("uint16", "uint32", "uint64")  # in Triton as others; torch has few operations on them
NEVER_RUN = "compiled for, never run"
OLDEST = (3, 6)  # of Triton: the driver that compiles without a device needs its interfaces
BUSY = 20_000_000  # clock cycles: about 10 ms, longer than a launch takes to come
UNITS = 64  # compute units told to kernels that ask, where a target's own number is not known


@dataclass(frozen=True)
class Device:
    """One visible device under torch's ordinal, as far as it is known without opening it."""

    index: int
    target: str
    name: str = ""
    memory: int = 0  # bytes
    uuid: str = ""


class NotHereError(Exception):
    """Something cannot be done on this machine: why, and what would change it."""

    def __init__(self, why: str, remedy: str) -> None:
        super().__init__(why)
        self.why, self.remedy = why, remedy


class DeviceSession(Session):
    """An opened target of a `DeviceBackend`: on its device, or compiled for."""

    def __init__(self, target: Target, limits: Limits) -> None:
        super().__init__(target)
        self.limits = limits
        self.streams = target.evidence is Evidence.RAN

    def synchronize(self) -> None:
        """Wait for the device; raises torch's error where a launch failed on it."""
        if self.target.evidence is Evidence.RAN:
            import torch

            torch.cuda.synchronize(self.target.index)

    @contextlib.contextmanager
    def elsewhere(self) -> Iterator[None]:
        """Make a new stream the current one, behind some milliseconds of work: what is not in it runs too early."""
        import torch

        stream = torch.cuda.Stream(self.target.index)  # type: ignore[no-untyped-call]
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            torch.cuda._sleep(BUSY)  # type: ignore[no-untyped-call]
            yield

    def resources(self, launch: Launch) -> Resources | None:
        """Return what the launch's cubin or hsaco needs."""
        from portability import binary

        return binary.resources(launch, self.limits)


class DeviceBackend(Backend):
    """An adapter of one vendor's GPUs. Subclasses set the attributes and say which devices are visible."""

    device: ClassVar[str] = "cuda"  # ROCm's torch keeps CUDA's name
    guard: ClassVar[int] = 4096  # a page: wider than any vector store, so that no stray one jumps the zone unseen
    compiler: ClassVar[str] = ""  # its name in `triton.backends`
    runtime: ClassVar[str] = ""  # the attribute of `torch.version` that a torch for these devices has
    cache_bytes: ClassVar[int] = 0  # of a cache that the device does not report, so that it is flushed too
    torch_index: ClassVar[str] = ""  # where such a torch is installed from

    def devices(self) -> Sequence[Device]:
        """Return the visible devices in torch's order without opening one. Raises `NotHereError` if there is none."""
        raise NotImplementedError

    def gpu_target(self, target: str) -> Any:
        """Return Triton's `GPUTarget` for a target."""
        raise NotImplementedError

    def status(self) -> Sequence[Target]:
        """Return the targets that run here, one for each architecture, then those that are compiled for."""
        try:
            versions = self._versions()
        except NotHereError as lack:
            return [self._target(t, Evidence.NONE, {}, lack.why, lack.remedy) for t in self.targets]
        found, others = self._here
        first = {d.target: d for d in reversed(found)}
        why = f"{others.why}: {NEVER_RUN}"
        runs = [
            replace(self._target(d.target, Evidence.RAN, versions), device=d.name, index=d.index, memory=d.memory)
            for d in sorted(first.values(), key=lambda d: d.index)
        ]
        rest = [t for t in self.targets if t not in first]
        return runs + [self._target(t, Evidence.COMPILED, versions, why, others.remedy) for t in rest]

    def _target(
        self, target: str, evidence: Evidence, versions: Mapping[str, str], why: str = "", remedy: str = ""
    ) -> Target:
        title = self.titles.get(target, "")
        return Target(target, self.name, title, evidence=evidence, why=why, remedy=remedy, versions=versions)

    def open(self, target: Target) -> AbstractContextManager[Session]:
        """Open the target on its device where its evidence is `ran`; else compile for it and launch into nothing."""
        return self._open(target)

    @contextlib.contextmanager
    def _open(self, target: Target) -> Iterator[Session]:
        from portability import launch, timing

        limits = self.limits_of(target.id)
        session = DeviceSession(target, limits)
        with contextlib.ExitStack() as stack:
            stack.enter_context(blocks_of(self.name, target.id))
            if target.evidence is Evidence.RAN:
                import torch

                stack.enter_context(timing.device_lock(self.device_uuid(target), exclusive=False))
                stack.enter_context(torch.cuda.device(target.index or 0))
                stack.enter_context(launch.recorded(session))
            else:
                stack.enter_context(launch.ghost(session, self.gpu_target(target.id), limits, limits.units or UNITS))
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
        """Return the time of `call`, alone on the device. To be called outside of `open`, which shares the device."""
        import torch

        from portability import timing
        from portability.accelerator import Accelerator

        with (
            timing.device_lock(self.device_uuid(target), exclusive=True),
            torch.cuda.device(target.index or 0),
            torch.no_grad(),
        ):
            device = Accelerator(target.index or 0, self.cache_bytes)
            return timing.measure(device, call, torch_call, cost, warmup_ms, rep_ms)

    def device_target(self, ordinal: int) -> str:
        """Return the target id of torch's device `ordinal`. Raises `LookupError` where it is not of this vendor."""
        for d in self._here[0]:
            if d.index == ordinal:
                return d.target
        raise LookupError(f"{self.name}: no device {ordinal} here: {self._here[1].why}")

    def device_uuid(self, target: Target) -> str:
        """Return what names the target's device for every process on this machine: its UUID, else its ordinal."""
        uuids = [d.uuid for d in self._here[0] if d.index == (target.index or 0)]
        return next(filter(None, uuids), f"{self.name}-{target.index or 0}")

    def _versions(self) -> Mapping[str, str]:
        """Return torch's and Triton's versions. Raises `NotHereError` where they cannot compile for these targets."""
        install = "pip install triton-portability, on Linux"
        try:
            import torch
            import triton
            from triton.backends import backends
        except ImportError as error:
            raise NotHereError(f"{error.name or 'triton'} cannot be imported ({error})", install) from error
        here = f"triton {triton.__version__}"
        stock = "an environment with Triton 3.6 or newer from PyPI"
        if self.compiler not in backends:
            raise NotHereError(f"{here} has no {self.compiler} compiler, only {', '.join(backends) or 'none'}", stock)
        if tuple(int(n) for n in re.findall(r"\d+", triton.__version__)[:2]) < OLDEST:
            raise NotHereError(f"{here} is older than {'.'.join(map(str, OLDEST))}", stock)
        return {"torch": torch.__version__, "triton": triton.__version__}

    @cached_property
    def _here(self) -> tuple[Sequence[Device], NotHereError]:
        """The devices that torch runs on here, and why the other targets are only compiled for."""
        try:
            found = self.devices()
        except NotHereError as lack:
            return (), lack
        import torch

        if getattr(torch.version, self.runtime, None) is None:
            names = ", ".join(sorted({d.name or d.target for d in found}))
            why = f"{names} is here, but torch {torch.__version__} is not built for it"
            return (), NotHereError(why, f"pip install torch --index-url {self.torch_index}")
        return found, NotHereError("no device of this architecture", "run on a machine that has one")
