"""TP2: launches, grids, warps and autotuning."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from portability.lint.branches import in_vendor_branch
from portability.lint.launches import ELEMENTS, LENGTH, Extent
from portability.lint.model import Hit, rule
from portability.lint.source import Kernel, Source

WAVE64 = ("hip:gfx9*",)
MOST_WARPS = 16  # of 64 lanes: 1,024 threads
UNROLLED = 64  # trips of a static_range that are still compiled in reasonable time and size


@rule(
    "TP201",
    "warps-beyond-wave64",
    targets=WAVE64,
    branches=True,
    link="https://github.com/linkedin/Liger-Kernel/issues/231",
    bad="""
import triton, triton.language as tl

@triton.jit
def relu_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(y_ptr + offsets, tl.maximum(tl.load(x_ptr + offsets, mask=mask), 0.0), mask=mask)

def relu(x, y):
    relu_kernel[(triton.cdiv(x.numel(), 8192),)](x, y, x.numel(), BLOCK=8192, num_warps=32)  # here
""",
    good="""
import triton, triton.language as tl

@triton.jit
def relu_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(y_ptr + offsets, tl.maximum(tl.load(x_ptr + offsets, mask=mask), 0.0), mask=mask)

def relu(x, y):
    relu_kernel[(triton.cdiv(x.numel(), 8192),)](x, y, x.numel(), BLOCK=8192, num_warps=16)
""",
)
def warps_beyond_wave64(source: Source) -> Iterator[Hit]:
    """More warps than a program may have where a warp is 64 lanes.

    A block holds at most 1,024 threads: 32 warps of 32, but 16 of the 64 that gfx9 has. The launch fails there, and
    autotuning drops the configuration.
    """
    for node in source.nodes:
        if isinstance(node, ast.keyword) and node.arg == "num_warps":
            values: list[ast.expr] = [node.value]
        elif isinstance(node, ast.Assign) and any(
            isinstance(t, ast.Name) and t.id.lower() == "num_warps" for t in node.targets
        ):
            values = [node.value]
        elif isinstance(node, ast.Call) and source.names.resolve(node.func) == "triton.Config":
            values = list(node.args[1:2])
        elif isinstance(node, ast.Dict):
            values = [
                v
                for k, v in zip(node.keys, node.values, strict=True)
                if isinstance(k, ast.Constant) and k.value == "num_warps"
            ]
        else:
            continue
        for place, warps in (w for v in values for w in _numbers(source, v)):
            if warps > MOST_WARPS and not in_vendor_branch(source, place):
                yield Hit(place, f"{warps} warps of 64 lanes are {warps * 64} threads; at most 1,024 fit a program")


def _numbers(source: Source, node: ast.expr) -> Iterator[tuple[ast.expr, int]]:
    """Yield the whole numbers that an expression may be: a choice, a name, the variable of a comprehension."""
    if isinstance(node, ast.IfExp):
        yield from _numbers(source, node.body)
        yield from _numbers(source, node.orelse)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("min", "max"):
        for argument in node.args:
            yield from _numbers(source, argument)
    elif isinstance(node, ast.Constant):
        if isinstance(node.value, int):
            yield node, node.value
    elif isinstance(node, ast.Name):
        loops = [
            g for a in source.ancestors(node) if isinstance(a, (ast.ListComp, ast.GeneratorExp)) for g in a.generators
        ]
        for loop in loops:
            if isinstance(loop.target, ast.Name) and loop.target.id == node.id:
                values = source.constants.assigned(loop.iter) if isinstance(loop.iter, ast.Name) else loop.iter
                for element in values.elts if isinstance(values, (ast.List, ast.Tuple)) else []:
                    yield from _numbers(source, element)


@rule(
    "TP203",
    "long-unrolled-loop",
    link="https://triton-lang.org/main/python-api/generated/triton.language.static_range.html",
    bad="""
import triton, triton.language as tl

@triton.jit
def total_kernel(x_ptr, out_ptr, stride):
    total = 0.0
    for i in tl.static_range(512):  # here
        total += tl.load(x_ptr + i * stride)
    tl.store(out_ptr, total)
""",
    good="""
import triton, triton.language as tl

@triton.jit
def total_kernel(x_ptr, out_ptr, stride):
    total = 0.0
    for i in tl.static_range(8):
        total += tl.load(x_ptr + i * stride)
    for i in range(8, 512):
        total += tl.load(x_ptr + i * stride)
    tl.store(out_ptr, total)
""",
)
def long_unrolled_loop(source: Source) -> Iterator[Hit]:
    """`tl.static_range` over more than 64 trips, or over a size of the data.

    Every trip is compiled by itself: compile time, registers and code grow with the count, and differently per
    target. `range` stays a loop.
    """
    for node in source.nodes:
        if not isinstance(node, ast.Call) or source.names.language(node.func) != "static_range":
            continue
        kernel = source.kernel_of(node)
        trips = _trips(source, kernel, node)
        if trips > UNROLLED:
            yield Hit(node, f"tl.static_range compiles {trips} trips one by one; range stays a loop")
            continue
        stop = node.args[min(1, len(node.args) - 1)] if node.args else None
        if isinstance(stop, ast.Name) and LENGTH.fullmatch(stop.id):
            yield Hit(node, f"tl.static_range({stop.id}) is unrolled over a length")
        elif kernel is not None and isinstance(stop, ast.Name):
            for launch in source.launches.of(kernel):
                size = launch.arguments.get(stop.id)
                if size is not None and source.launches.extent(size) is Extent.DATA:
                    yield Hit(
                        node, f"tl.static_range({stop.id}) is unrolled over {ast.unparse(size)}, a size of the data"
                    )
                    break


def _trips(source: Source, kernel: Kernel | None, node: ast.Call) -> int:
    """Return the most trips that can be told from literals, launches, configurations and defaults; 0 for none."""

    def values(argument: ast.expr) -> list[int]:
        if kernel is not None and isinstance(argument, ast.Name) and kernel.parameter(argument.id) is not None:
            return [v for v, _ in source.launches.values(kernel, argument.id) if isinstance(v, int)]
        value = source.constants.literal(argument)
        return [value] if isinstance(value, int) else []

    bounds = [values(a) for a in node.args]
    if not bounds or not all(bounds):
        return 0
    start = min(bounds[0]) if len(bounds) > 1 else 0
    step = max(*bounds[2], 1) if len(bounds) > 2 else 1
    return (max(bounds[min(1, len(bounds) - 1)]) - start) // step


@rule(
    "TP206",
    "size-as-constant",
    link="https://triton-lang.org/main/python-api/generated/triton.jit.html",
    bad="""
import triton, triton.language as tl

@triton.jit
def copy_kernel(x_ptr, y_ptr, N: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < N
    tl.store(y_ptr + offsets, tl.load(x_ptr + offsets, mask=mask), mask=mask)

def copy(x, y):
    copy_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)  # here
""",
    good="""
import triton, triton.language as tl

@triton.jit
def copy_kernel(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < N
    tl.store(y_ptr + offsets, tl.load(x_ptr + offsets, mask=mask), mask=mask)

def copy(x, y):
    copy_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)
""",
)
def size_as_constant(source: Source) -> Iterator[Hit]:
    """A size of the data is passed as `tl.constexpr`.

    Each new size compiles another binary, and the variant for multiples of 16 is never shared. Constants are for
    tiles and for dimensions that a model fixes; those that a block's shape needs are not reported.
    """
    for launch in source.launches.all:
        if launch.kernel is None:
            continue
        shaped = _shape_names(source, launch.kernel)
        for name, value in launch.arguments.items():
            parameter = launch.kernel.parameter(name)
            if parameter is None or not parameter.constant or name in shaped:
                continue
            extent, words = source.launches.extent(value), (name, ast.unparse(value))
            named = extent is Extent.UNKNOWN and any(LENGTH.fullmatch(w) for w in words)
            if named or extent is Extent.DATA:
                yield Hit(
                    value, f"{name} is a constant of the kernel and is given {ast.unparse(value)}: one binary a size"
                )
    for kernel in source.kernels:
        for parameter in kernel.parameters:
            alone = not source.launches.of(kernel) and not kernel.helper
            if (
                alone
                and parameter.constant
                and ELEMENTS.fullmatch(parameter.name)
                and parameter.name not in _shape_names(source, kernel)
            ):
                yield Hit(parameter.node, f"{parameter.name} is a constant of the kernel: one binary a size")


def _shape_names(source: Source, kernel: Kernel) -> set[str]:
    """Names that enter the shape of a block, which must be constant."""
    names: set[str] = set()
    for node in source.nodes_of(kernel):
        if isinstance(node, ast.Call) and source.names.language(node.func) in (
            "arange",
            "zeros",
            "full",
            "static_range",
        ):
            names |= {n.id for a in node.args for n in ast.walk(a) if isinstance(n, ast.Name)}
    return names


@rule(
    "TP208",
    "spin-wait",
    link="https://github.com/triton-lang/triton/issues/11037",
    bad="""
import triton, triton.language as tl

@triton.jit
def barrier_kernel(count_ptr, N: tl.constexpr):
    tl.atomic_add(count_ptr, 1, sem="release")
    while tl.atomic_add(count_ptr, 0, sem="acquire") < N:  # here
        pass
""",
    good="""
import triton, triton.language as tl

@triton.jit
def multiply_kernel(total_ptr, factor):
    old = tl.load(total_ptr)
    seen = tl.atomic_cas(total_ptr, old, old * factor)
    while seen != old:  # ends once this program's own exchange succeeds: it waits for no other program
        old = seen
        seen = tl.atomic_cas(total_ptr, old, old * factor)
""",
)
def spin_wait(source: Source) -> Iterator[Hit]:
    """A program waits in a loop for what another program does.

    Nothing promises that the other one runs at the same time: with more programs than the device holds at once it
    never does, and the interpreter runs programs one after another. Split the kernel in two.
    """
    for kernel in source.kernels:
        for node in source.nodes_of(kernel):
            if isinstance(node, ast.While) and _waits(source, node):
                yield Hit(node, "the loop waits for another program, which may never run beside this one")


def _waits(source: Source, node: ast.While) -> bool:
    """The loop does nothing but read memory, and its test depends on what is read."""
    if not all(_is_idle(source, s) for s in node.body):
        return False
    read: set[str] = set()
    for statement in node.body:
        if isinstance(statement, ast.Assign) and (_names(statement.value) & read or _has_read(source, statement.value)):
            read |= {n for t in statement.targets for n in _names(t)}
    return _has_read(source, node.test) or bool(_names(node.test) & read)


def _names(node: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


def _has_read(source: Source, node: ast.AST) -> bool:
    return any(_reads(source, n) for n in ast.walk(node))


def _reads(source: Source, node: ast.AST) -> bool:
    """A plain load, an atomic that changes nothing, or a lock: an exchange of numbers."""
    if not isinstance(node, ast.Call):
        return False
    name = source.names.language(node.func)
    if name in ("atomic_cas", "atomic_xchg"):
        return all(isinstance(source.constants.literal(a), int) for a in node.args[1:])
    return name in ("load", "atomic_load", "atomic_poll", "atomic_add", "atomic_or", "atomic_max")


def _is_idle(source: Source, statement: ast.stmt) -> bool:
    """No call but a read, a barrier or a cast."""
    if not isinstance(statement, (ast.Pass, ast.Expr, ast.Assign)):
        return False
    calls = [n for n in ast.walk(statement) if isinstance(n, ast.Call)]
    return all(_reads(source, c) or source.names.language(c.func) == "debug_barrier" or _is_cast(c) for c in calls)


def _is_cast(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr == "to"
