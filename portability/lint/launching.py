"""TP2: launches, grids, warps and autotuning."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from portability.lint.calls import keyword
from portability.lint.launches import Extent, Tuning
from portability.lint.model import Hit, rule
from portability.lint.source import Kernel, Source
from portability.lint.values import Access

WAVE64 = ("hip:gfx9*",)
MOST_WARPS = 16  # of 64 lanes: 1,024 threads
UNROLLED = 64  # trips of a static_range that are still compiled in reasonable time and size

# Lengths that differ from call to call, by the names that kernels give them.
_LENGTH = re.compile(
    r"n_?elements?|numel|n_?tokens?|num_tokens?|total_tokens|seq_?len\w*|max_seq_?len\w*|n_?rows?|num_rows?|seqlen_\w+|ctx_?len|T"
    r"|batch(_size)?|bsz",
    re.IGNORECASE,
)


@rule(
    "TP201",
    "warps-beyond-wave64",
    targets=WAVE64,
    branches=True,
    link="https://github.com/linkedin/Liger-Kernel/issues/231",
    bad='''
import triton, triton.language as tl

@triton.jit
def relu_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(y_ptr + offsets, tl.maximum(tl.load(x_ptr + offsets, mask=mask), 0.0), mask=mask)

def relu(x, y):
    relu_kernel[(triton.cdiv(x.numel(), 8192),)](x, y, x.numel(), BLOCK=8192, num_warps=32)  # here
''',
    good='''
import triton, triton.language as tl

@triton.jit
def relu_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(y_ptr + offsets, tl.maximum(tl.load(x_ptr + offsets, mask=mask), 0.0), mask=mask)

def relu(x, y):
    relu_kernel[(triton.cdiv(x.numel(), 8192),)](x, y, x.numel(), BLOCK=8192, num_warps=16)
''',
)
def warps_beyond_wave64(source: Source) -> Iterator[Hit]:
    """More warps than a program may have where a warp is 64 lanes.

    A block holds at most 1,024 threads: 32 warps of 32, but 16 of the 64 that gfx9 has. The launch fails there, and
    autotuning drops the configuration.
    """
    for node in source.nodes:
        if isinstance(node, ast.keyword) and node.arg == "num_warps":
            values: list[ast.expr] = [node.value]
        elif isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id.lower() == "num_warps" for t in node.targets):
            values = [node.value]
        elif isinstance(node, ast.Call) and source.names.resolve(node.func) == "triton.Config":
            values = list(node.args[1:2])
        else:
            continue
        for place, warps in (w for v in values for w in _numbers(source, v)):
            if warps > MOST_WARPS and not source.in_vendor_branch(place):
                yield Hit(place, f"{warps} warps of 64 lanes are {warps * 64} threads; at most 1,024 fit a program")


def _numbers(source: Source, node: ast.expr) -> Iterator[tuple[ast.expr, int]]:
    """Yield the whole numbers that an expression may be: a choice, a name, the variable of a comprehension."""
    if isinstance(node, ast.IfExp):
        yield from _numbers(source, node.body)
        yield from _numbers(source, node.orelse)
    elif isinstance(node, ast.Constant):
        if isinstance(node.value, int):
            yield node, node.value
    elif isinstance(node, ast.Name):
        loops = [g for a in source.ancestors(node) if isinstance(a, (ast.ListComp, ast.GeneratorExp)) for g in a.generators]
        for loop in loops:
            if isinstance(loop.target, ast.Name) and loop.target.id == node.id:
                values = source.assigned(loop.iter) if isinstance(loop.iter, ast.Name) else loop.iter
                for element in values.elts if isinstance(values, (ast.List, ast.Tuple)) else []:
                    yield from _numbers(source, element)


@rule(
    "TP202",
    "grid-axis-from-data",
    targets=("cuda:*", "npu:*"),
    branches=True,
    link="https://github.com/fla-org/flash-linear-attention/issues/172",
    bad='''
import triton, triton.language as tl

@triton.jit
def scale_kernel(x_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    row = x_ptr + tl.program_id(1).to(tl.int64) * n
    mask = offsets < n
    tl.store(row + offsets, 2 * tl.load(row + offsets, mask=mask), mask=mask)

def scale(x):
    n = x.shape[1]
    scale_kernel[(triton.cdiv(n, 256), x.shape[0])](x, n, BLOCK=256)  # here
''',
    good='''
import triton, triton.language as tl

@triton.jit
def scale_kernel(x_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    row = x_ptr + tl.program_id(0).to(tl.int64) * n
    mask = offsets < n
    tl.store(row + offsets, 2 * tl.load(row + offsets, mask=mask), mask=mask)

def scale(x):
    n = x.shape[1]
    scale_kernel[(x.shape[0], triton.cdiv(n, 256))](x, n, BLOCK=256)
''',
)
def grid_axis_from_data(source: Source) -> Iterator[Hit]:
    """A size of the data lies whole on the second or third axis of the grid.

    CUDA takes at most 65,535 programs there, and Ascend that many in all. Put the batch on the first axis, or fold
    the axes into one. Sizes that are divided by a block, bounded, or heads of a model are not reported.
    """
    for launch in source.launches.all:
        for axis, size in enumerate(source.launches.grid(launch)[1:3], start=1):
            if source.launches.extent(size) is Extent.DATA:
                name = "yz"[axis - 1]
                yield Hit(size, f"grid axis {name} is {ast.unparse(size)}, which data can take past 65,535")


@rule(
    "TP203",
    "long-unrolled-loop",
    link="https://triton-lang.org/main/python-api/generated/triton.language.static_range.html",
    bad='''
import triton, triton.language as tl

@triton.jit
def total_kernel(x_ptr, out_ptr, stride):
    total = 0.0
    for i in tl.static_range(512):  # here
        total += tl.load(x_ptr + i * stride)
    tl.store(out_ptr, total)
''',
    good='''
import triton, triton.language as tl

@triton.jit
def total_kernel(x_ptr, out_ptr, stride):
    total = 0.0
    for i in tl.static_range(8):
        total += tl.load(x_ptr + i * stride)
    for i in range(8, 512):
        total += tl.load(x_ptr + i * stride)
    tl.store(out_ptr, total)
''',
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
        if kernel is not None and isinstance(stop, ast.Name):
            for launch in source.launches.of(kernel):
                size = launch.arguments.get(stop.id)
                if size is not None and source.launches.extent(size) is Extent.DATA:
                    yield Hit(node, f"tl.static_range({stop.id}) is unrolled over {ast.unparse(size)}, a size of the data")
                    break


def _trips(source: Source, kernel: Kernel | None, node: ast.Call) -> int:
    """Return the most trips that can be told from literals, launches, configurations and defaults; 0 for none."""

    def values(argument: ast.expr) -> list[int]:
        if kernel is not None and isinstance(argument, ast.Name) and kernel.parameter(argument.id) is not None:
            return [v for v, _ in source.launches.values(kernel, argument.id) if isinstance(v, int)]
        value = source.literal(argument)
        return [value] if isinstance(value, int) else []

    bounds = [values(a) for a in node.args]
    if not bounds or not all(bounds):
        return 0
    start = min(bounds[0]) if len(bounds) > 1 else 0
    step = max(1, max(bounds[2])) if len(bounds) > 2 else 1
    return (max(bounds[min(1, len(bounds) - 1)]) - start) // step


@rule(
    "TP204",
    "default-warps",
    targets=("cuda:*", "hip:*"),
    link="https://triton-lang.org/main/python-api/generated/triton.Config.html",
    bad='''
import triton, triton.language as tl

CONFIGS = [
    triton.Config({"BLOCK_M": 256, "BLOCK_N": 128}),  # here
    triton.Config({"BLOCK_M": 64, "BLOCK_N": 64}, num_warps=4, num_stages=3),
]
''',
    good='''
import triton, triton.language as tl

CONFIGS = [
    triton.Config({"BLOCK_M": 256, "BLOCK_N": 128}, num_warps=8, num_stages=3),
    triton.Config({"BLOCK_M": 64, "BLOCK_N": 64}, num_warps=4, num_stages=3),
]
''',
)
def default_warps(source: Source) -> Iterator[Hit]:
    """A tuned configuration leaves `num_warps` to the default.

    The default of 4 is 128 threads on CUDA and 256 on gfx9, whatever the tile: a 256×128 tile spills there. Name
    the warps (and stages) of every configuration.
    """
    for config in source.launches.configs:
        given = len(config.args) > 1 or keyword(config, "num_warps") is not None
        tiles = config.args[0] if config.args else keyword(config, "kwargs")
        if given or any(k.arg is None for k in config.keywords) or (isinstance(tiles, ast.Dict) and not tiles.keys):
            continue  # no tiles: a place-holder, so that there is nothing to tune
        if isinstance(tiles, ast.Dict) and any(isinstance(k, ast.Constant) and k.value == "num_warps" for k in tiles.keys):
            yield Hit(config, "num_warps among the constants is overridden by the default of 4; give it as num_warps=")
        else:
            yield Hit(config, "configuration without num_warps: the default of 4 is tuned for no tile")


@rule(
    "TP205",
    "raw-length-key",
    link="https://triton-lang.org/main/python-api/generated/triton.autotune.html",
    bad='''
import triton, triton.language as tl

@triton.autotune(
    configs=[triton.Config({"BLOCK": 256}, num_warps=4), triton.Config({"BLOCK": 1024}, num_warps=8)],
    key=["n_elements"],  # here
)
@triton.jit
def copy_kernel(x_ptr, y_ptr, n_elements, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n_elements
    tl.store(y_ptr + offsets, tl.load(x_ptr + offsets, mask=mask), mask=mask)
''',
    good='''
import triton, triton.language as tl

@triton.autotune(
    configs=[triton.Config({"BLOCK": 256}, num_warps=4), triton.Config({"BLOCK": 1024}, num_warps=8)],
    key=["LENGTH_BUCKET"],
)
@triton.jit
def copy_kernel(x_ptr, y_ptr, n_elements, LENGTH_BUCKET: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n_elements
    tl.store(y_ptr + offsets, tl.load(x_ptr + offsets, mask=mask), mask=mask)

def copy(x, y):
    bucket = triton.next_power_of_2(x.numel())
    grid = lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)
    copy_kernel[grid](x, y, x.numel(), LENGTH_BUCKET=bucket)
''',
)
def raw_length_key(source: Source) -> Iterator[Hit]:
    """The key of autotuning holds a length that differs from call to call.

    Every new length is tuned again, with every configuration, on every target; the choice then also differs from
    run to run. Key on a bucket: the next power of two.
    """
    for tuning in source.launches.tunings:
        for key in tuning.keys:
            if tuning.several and _is_length(source, tuning, str(key.value)):
                yield Hit(key, f"key {key.value!r} is a length: every new one is tuned again; key on a bucket")


def _is_length(source: Source, tuning: Tuning, name: str) -> bool:
    passed = [v for launch in source.launches.of(tuning.kernel) if (v := launch.arguments.get(name)) is not None]
    extents = [source.launches.extent(v) for v in passed]
    if any(e in (Extent.BLOCKS, Extent.FIXED) for e in extents):
        return False
    return Extent.DATA in extents or _LENGTH.fullmatch(name) is not None


@rule(
    "TP206",
    "size-as-constant",
    link="https://triton-lang.org/main/python-api/generated/triton.jit.html",
    bad='''
import triton, triton.language as tl

@triton.jit
def copy_kernel(x_ptr, y_ptr, N: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < N
    tl.store(y_ptr + offsets, tl.load(x_ptr + offsets, mask=mask), mask=mask)

def copy(x, y):
    copy_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)  # here
''',
    good='''
import triton, triton.language as tl

@triton.jit
def copy_kernel(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < N
    tl.store(y_ptr + offsets, tl.load(x_ptr + offsets, mask=mask), mask=mask)

def copy(x, y):
    copy_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)
''',
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
            if source.launches.extent(value) is Extent.DATA:
                yield Hit(value, f"{name} is a constant of the kernel and is given {ast.unparse(value)}: one binary a size")


def _shape_names(source: Source, kernel: Kernel) -> set[str]:
    """Names that enter the shape of a block, which must be constant."""
    names: set[str] = set()
    for node in source.nodes_of(kernel):
        if isinstance(node, ast.Call) and source.names.language(node.func) in ("arange", "zeros", "full", "static_range"):
            names |= {n.id for a in node.args for n in ast.walk(a) if isinstance(n, ast.Name)}
    return names


@rule(
    "TP207",
    "tuned-accumulation",
    link="https://github.com/triton-lang/triton/issues/4217",
    bad='''
import triton, triton.language as tl

@triton.autotune(
    configs=[triton.Config({"BLOCK": 64}, num_warps=2), triton.Config({"BLOCK": 128}, num_warps=4)], key=["DIM"]
)
@triton.jit
def sum_kernel(x_ptr, out_ptr, n, DIM: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=0.0)
    tl.atomic_add(out_ptr, tl.sum(x, 0))  # here
''',
    good='''
import triton, triton.language as tl

@triton.autotune(
    configs=[triton.Config({"BLOCK": 64}, num_warps=2), triton.Config({"BLOCK": 128}, num_warps=4)],
    key=["DIM"],
    reset_to_zero=["out_ptr"],
)
@triton.jit
def sum_kernel(x_ptr, out_ptr, n, DIM: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=0.0)
    tl.atomic_add(out_ptr, tl.sum(x, 0))
''',
)
def tuned_accumulation(source: Source) -> Iterator[Hit]:
    """A tuned kernel adds to what is in memory, and nothing restores it between configurations.

    Tuning launches the kernel many times on the caller's tensors, so the first result is a multiple of the right
    one, or an update in place is made again and again. Name the tensor in `reset_to_zero` or `restore_value`.
    """
    for tuning in source.launches.tunings:
        if not tuning.several or tuning.hooked:
            continue
        seen: set[str] = set()
        for access in source.flow(tuning.kernel).accesses.values():
            base = access.pointer.base
            if not base or base in tuning.restored or base in seen or not _accumulates(access):
                continue
            if tuning.configs or not _under_constant(source, tuning.kernel, access.node):
                seen.add(base)
                how = "adds to" if access.name == "atomic_add" else "updates"
                yield Hit(access.node, f"the kernel {how} {base} and is tuned: name it in reset_to_zero or restore_value")


def _under_constant(source: Source, kernel: Kernel, node: ast.AST) -> bool:
    """Return whether a test of constants is around the place: configurations that are not seen may never reach it."""
    constants = {p.name for p in kernel.parameters if p.constant}
    for ancestor in source.ancestors(node):
        if isinstance(ancestor, ast.If) and {n.id for n in ast.walk(ancestor.test) if isinstance(n, ast.Name)} <= constants:
            return True
    return False


def _accumulates(access: Access) -> bool:
    return access.name == "atomic_add" or (access.name == "store" and access.text in access.value.loads)


@rule(
    "TP208",
    "spin-wait",
    link="https://github.com/triton-lang/triton/issues/11037",
    bad='''
import triton, triton.language as tl

@triton.jit
def barrier_kernel(count_ptr, N: tl.constexpr):
    tl.atomic_add(count_ptr, 1, sem="release")
    while tl.atomic_add(count_ptr, 0, sem="acquire") < N:  # here
        pass
''',
    good='''
import triton, triton.language as tl

@triton.jit
def multiply_kernel(total_ptr, factor):
    old = tl.load(total_ptr)
    seen = tl.atomic_cas(total_ptr, old, old * factor)
    while seen != old:  # ends once this program's own exchange succeeds: it waits for no other program
        old = seen
        seen = tl.atomic_cas(total_ptr, old, old * factor)
''',
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
    """The test reads memory, or what the body reads; the body does nothing else than read."""
    tested = {n.id for n in ast.walk(node.test) if isinstance(n, ast.Name)}
    if any(_reads(source, n) for n in ast.walk(node.test)):
        return all(_is_idle(source, s) for s in node.body)
    reads = [s for s in node.body if isinstance(s, ast.Assign) and _reads(source, s.value)]
    names = {t.id for s in reads for t in s.targets if isinstance(t, ast.Name)}
    return bool(names & tested) and all(_is_idle(source, s) for s in node.body)


def _reads(source: Source, node: ast.AST) -> bool:
    """A plain load, an atomic that changes nothing, or a lock: an exchange of numbers."""
    if not isinstance(node, ast.Call):
        return False
    name = source.names.language(node.func)
    if name in ("atomic_cas", "atomic_xchg"):
        return all(isinstance(source.literal(a), int) for a in node.args[1:])
    return name in ("load", "atomic_load", "atomic_poll", "atomic_add", "atomic_or", "atomic_max")


def _is_idle(source: Source, statement: ast.stmt) -> bool:
    if isinstance(statement, (ast.Pass, ast.Expr)):
        return isinstance(statement, ast.Pass) or _reads(source, statement.value) or isinstance(statement.value, ast.Constant)
    return isinstance(statement, ast.Assign) and _reads(source, statement.value)
