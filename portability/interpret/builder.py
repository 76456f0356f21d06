"""The operations of `triton.language` on numpy arrays: Triton's own builder where that is right.

Triton's interpreter computes bfloat16 and float8 on their raw bits, rounds wrongly when it narrows, and lets every
address through. Each method of these classes has the name and the arguments that Triton's front end calls.
"""

# ruff: noqa: D102 - these methods have the names, arguments and meaning of Triton's builder

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
import triton.language as tl

from portability.interpret.access import Access
from portability.interpret.conversion import Conversion
from portability.interpret.elementwise import numbers
from portability.interpret.integers import Integers
from portability.interpret.internals import InterpreterOptions, TensorDescHandle, TensorHandle, ir
from portability.interpret.libdevice import compute
from portability.interpret.races import Sync
from portability.interpret.report import Report, Unsupported
from portability.interpret.runtime import Runtime
from portability.interpret.shapes import Shapes
from portability.interpret.targets import Targets
from portability.interpret.undefined import spread
from portability.interpret.values import numpy_dtype
from portability.interpret.variants import Variants

Handle = Any  # a TensorHandle

ALIGNMENT = 16  # bytes, of a descriptor's base and of all strides but the last
SYNC = {
    ir.MEM_SEMANTIC.RELAXED: Sync.RELAXED, ir.MEM_SEMANTIC.ACQUIRE: Sync.ACQUIRE,
    ir.MEM_SEMANTIC.RELEASE: Sync.RELEASE, ir.MEM_SEMANTIC.ACQUIRE_RELEASE: Sync.BOTH,
}  # fmt: skip
PRECISIONS = ("tf32", "tf32x3", "ieee", "bf16x3", "bf16x6")


@dataclasses.dataclass(frozen=True)
class Options(InterpreterOptions):  # type: ignore[misc]
    """What kernels can read of a launch, and the front end of a target; every precision has a name here."""

    allowed_dot_input_precisions: tuple[str, ...] = PRECISIONS
    arch: str = ""  # of no device
    num_warps: int = 4
    num_stages: int = 3
    num_ctas: int = 1
    sanitize_overflow: bool = False  # the builder looks itself, and says more

    @property
    def warp_size(self) -> int:
        """Of a target: there is none to ask."""
        raise Unsupported("the threads of a warp are a target's: the interpreter has none")


class CheckedBuilder(Integers, Conversion, Variants, Shapes):
    """Triton's interpreter builder with right narrow formats, checked accesses and computed library calls.

    `grid_dim` and `grid_idx` are set by the session; `access` owns memory; `runtime`, set by the language, waits.
    """

    runtime: Runtime

    def __init__(self, report: Report, access: Access, targets: Targets) -> None:
        super().__init__()
        self.options = Options()
        self.codegen_fns["convert_custom_types"] = self.convert_custom_types
        self.report = report
        self.access = access
        self.targets = targets
        self.changed, self.concerned = {}, set()

    def launched(self, options: Mapping[str, Any]) -> None:
        """Take the options of a launch: those that a kernel can see."""
        names = {"num_warps", "num_stages", "num_ctas", "debug"}
        self.options = Options(**{k: v for k, v in options.items() if k in names and v is not None})
        self.fuses = options.get("enable_fp_fusion", True)

    # ------------------------------------------------------------------------------------------------ memory

    def create_load(self, ptr: Handle, *policy: Any) -> Handle:
        return self.access.load(ptr, None, None, Sync.ACQUIRE if policy and policy[-1] else Sync.NONE)

    def create_masked_load(self, ptrs: Handle, mask: Any, other: Handle | None, *policy: Any, **named: Any) -> Handle:
        volatile = policy and policy[-1]
        return self.access.load(ptrs, _lanes(mask), other, Sync.ACQUIRE if volatile else Sync.NONE)

    def create_store(self, ptr: Handle, val: Handle, *policy: Any) -> None:
        self.access.store(ptr, val, None)

    def create_masked_store(self, ptrs: Handle, value: Handle, mask: Any, *policy: Any, **named: Any) -> None:
        self.access.store(ptrs, value, _lanes(mask))

    def create_atomic_rmw(self, rmwOp: Any, ptr: Handle, val: Handle, mask: Handle, sem: Any, scope: Any) -> Handle:
        if val.dtype.scalar.name == "bf16":
            self.report.warn(
                "bf16-atomic", "atomic on bfloat16: emulated or refused on targets without the instruction"
            )
        return self.access.atomic(rmwOp.name, ptr, val, mask.data, _sync(sem, scope))

    def create_atomic_cas(self, ptr: Handle, cmp: Handle, val: Handle, sem: Any, scope: Any) -> Handle:
        return self.access.compare_and_swap(ptr, cmp, val, _sync(sem, scope))

    def create_atomic_load(self, ptr: Handle, mask: Handle, sem: Any, scope: Any) -> Handle:
        return self.access.load(ptr, mask.data, None, _sync(sem, scope), atomic=True)

    def create_atomic_store(self, ptr: Handle, val: Handle, mask: Handle, sem: Any, scope: Any) -> None:
        self.access.store(ptr, val, mask.data, _sync(sem, scope), atomic=True)

    def create_atomic_poll(self, ptr: Handle, expected: Handle, timeout_ns: Any, sem: Any, scope: Any) -> Handle:
        """Wait until memory holds what is expected, or with a limit of time until no earlier program is left to run."""
        limited = isinstance(timeout_ns, TensorHandle)  # else an empty value of Triton's IR
        while True:
            seen = self.access.load(ptr, None, None, _sync(sem, scope), atomic=True)
            found = TensorHandle(seen.data == expected.data, tl.int1)
            if found.data.all() or (limited and not self.runtime.earlier()):
                return found
            if not limited:
                self.runtime.give_way("polls for a value that nothing stores while it waits: no other program runs")

    def create_descriptor_reduce(self, kind: Any, desc: Any, value: Handle, indices: list[Handle]) -> None:
        pointers, mask = desc.materialize_pointers(indices)
        name = "FADD" if kind.name == "ADD" and value.dtype.scalar.is_floating() else kind.name
        self.access.atomic(name, pointers, value, _lanes(mask), Sync.RELAXED)

    def create_make_tensor_descriptor(
        self, base: Handle, shape: list[Handle], strides: list[Handle], tensor_shape: list[int], *rest: Any
    ) -> Handle:
        """A descriptor; what only some targets refuse is a warning about these."""
        size = base.dtype.element_ty.primitive_bitwidth // 8
        lags = [int(s.data.item()) * size % ALIGNMENT for s in strides[:-1]]
        if int(base.data.item()) % ALIGNMENT or any(lags):
            message = f"a descriptor whose base or strides are no multiples of {ALIGNMENT} bytes: a fault of the device"
            self.report.warn("descriptor-alignment", message, self.targets.with_descriptors())
        return TensorDescHandle(base, shape, strides, tensor_shape, *rest[1:2])

    def create_barrier(self) -> None:
        """One program runs at a time, all its lanes in step: there is nothing to wait for."""

    create_grid_dependency_wait = create_barrier
    create_grid_dependency_launch_dependents = create_barrier

    def create_print(self, prefix: str, hex: bool, values: list[Handle], isSigned: list[bool]) -> None:
        """Print the program, the prefix and each value: one line each, floats in hexadecimal by their value."""
        bits: Any = {"float_kind": lambda x: float(x).hex(), "int": lambda x: f"{x:#x}"}
        with np.printoptions(formatter=bits if hex else None):
            for value in values:
                print(f"{self.grid_idx} {prefix or ''} {numbers(value)}")

    # ----------------------------------------------------------------------------------------- foreign code

    def create_extern_elementwise(
        self, libName: str, libPath: str, symbol: str, argList: list[Handle], retType: Any, isPure: bool
    ) -> Handle:
        """A call of a vendor's device library."""
        values = compute(symbol, [numbers(a) for a in argList])
        return spread(TensorHandle(values.astype(numpy_dtype(retType)), retType.scalar), *argList)

    def create_inline_asm(self, inlineAsm: str, *rest: Any) -> Handle:
        raise Unsupported(f"inline assembly is not interpreted: {' '.join(inlineAsm.split())[:80]!r}")

    def create_assume(self, condition: Handle) -> None:
        """What the compiler may take for granted, without a check on any target."""
        if not np.all(condition.data):
            self.report.warn("false-assumption", "tl.assume of what is not so: compilers may make anything of it")


def _sync(sem: Any, scope: Any) -> Sync:
    """What an atomic orders. Its scope may be the running program (`cta`), the device, or the system."""
    return Sync.OWN if scope == ir.MEM_SYNC_SCOPE.CTA else SYNC[sem]


def _lanes(mask: Any) -> Any:
    """The lanes of a mask, which Triton before 3.9 sometimes passes as a bare array."""
    return mask.data if isinstance(mask, TensorHandle) else mask
