"""What the launch limits and Triton's compilers of all targets say, for warnings about targets that do not run here."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

from triton.backends import backends
from triton.backends.compiler import GPUTarget

from portability.backend import Backend, Launch, Limits, check_launch, discover


@dataclasses.dataclass(frozen=True)
class Compiler:
    """One target's compiler, as Triton has it."""

    target: str
    backend: Any  # triton.backends.compiler.BaseBackend
    options: Any  # its options, all at their defaults

    @property
    def names(self) -> frozenset[str]:
        """The launch options that it knows."""
        return frozenset(f.name for f in dataclasses.fields(self.options))


class Targets:
    """All targets of all adapters but the one that runs here."""

    def __init__(self, here: str) -> None:
        self.here = here

    def refused(self, launch: Launch) -> Iterator[tuple[str, str, tuple[str, ...]]]:
        """Yield code, message and targets of everything about a launch that some target refuses or ignores."""
        found: dict[tuple[str, str], list[str]] = {}
        for target, limits in _limits(self.here):
            for problem in check_launch(limits, launch):
                found.setdefault((problem.code, problem.message.partition(": ")[2]), []).append(target)
        for compiler in compilers(self.here):
            unknown = sorted(launch.options.keys() - compiler.names)
            if unknown:
                message = f"launch options {', '.join(unknown)}: unknown there, silently ignored here"
                found.setdefault(("unknown-option", message), []).append(compiler.target)
        for (code, message), targets in found.items():
            yield code, message, tuple(targets)

    def every(self) -> list[str]:
        """Return all of them."""
        return [target for target, _ in _limits(self.here)]

    def dot_minimum(self, lhs: Any, rhs: Any) -> dict[tuple[int, int, int], list[str]]:
        """Return the targets by the least M, N and K of a dot of these element types."""
        found: dict[tuple[int, int, int], list[str]] = {}
        if lhs.primitive_bitwidth == rhs.primitive_bitwidth:
            for compiler in compilers(self.here):
                least = _codegen(compiler)["min_dot_size"](lhs, rhs)
                found.setdefault(least, []).append(compiler.target)
        return found

    def with_descriptors(self) -> list[str]:
        """Return the targets that have a unit of their own for tensor descriptors: NVIDIA's, from sm_90 on."""
        gpus = ((c.target, c.backend.target) for c in compilers(self.here))
        return [target for target, gpu in gpus if gpu.backend == "cuda" and gpu.arch >= 90]

    def fusing(self) -> list[str]:
        """Return the targets whose compiler contracts products and sums unless it is told not to."""
        return [c.target for c in compilers(self.here) if getattr(c.options, "enable_fp_fusion", False)]

    def of_nvidia(self) -> list[str]:
        """Return NVIDIA's targets, whose quotients are approximate."""
        return [c.target for c in compilers(self.here) if c.backend.target.backend == "cuda"]

    def of_mi200(self) -> list[str]:
        """Return the targets whose matrix units flush subnormal numbers of half precision.

        PyTorch's notes on numerical accuracy say so of MI200, and that MI300 does not.
        """
        return [c.target for c in compilers(self.here) if c.backend.target.arch == "gfx90a"]

    def of_gpus(self) -> list[str]:
        """Return all targets that Triton's own compilers are for."""
        return [c.target for c in compilers(self.here)]

    def with_precision(self, name: str) -> list[str]:
        """Return the targets that have the input precision of a dot."""
        return [c.target for c in compilers(self.here) if name in c.options.allowed_dot_input_precisions]

    def without_precision(self, name: str) -> list[str]:
        """Return the targets that refuse it."""
        return [c.target for c in compilers(self.here) if name not in c.options.allowed_dot_input_precisions]


def _adapters(here: str) -> Sequence[Backend]:
    return [b for b in discover().values() if here not in b.targets]


@cache
def _limits(here: str) -> list[tuple[str, Limits]]:
    return [(target, backend.limits_of(target)) for backend in _adapters(here) for target in backend.targets]


@cache
def compilers(here: str) -> list[Compiler]:
    """Return the compilers of those targets that the installed Triton compiles for."""
    found = []
    for target, limits in _limits(here):
        name, _, arch = target.partition(":")
        gpu = GPUTarget(name, int(arch) if arch.isdigit() else arch, limits.warp or 32)
        for backend in backends.values():
            if backend.compiler.supports_target(gpu):
                compiler = backend.compiler(gpu)
                with warnings.catch_warnings():  # of defaults that will change: nothing is compiled with them
                    warnings.simplefilter("ignore")
                    found.append(Compiler(target, compiler, compiler.parse_options({})))
    return found


@cache
def _codegen(compiler: Compiler) -> Any:
    return compiler.backend.get_codegen_implementation(compiler.options)
