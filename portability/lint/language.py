"""TP5: names and arguments that the language does not have, or no longer has."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from portability.lint.branches import in_vendor_branch, is_guarded
from portability.lint.model import Hit, rule
from portability.lint.names import known
from portability.lint.source import Source

# What to write in place of names that are often written and do not exist.
INSTEAD = {
    "triton.language.transpose": "tl.trans or tl.permute",
    "triton.language.splat": "tl.full or tl.broadcast_to",
    "triton.language.ones": "tl.full",
    "triton.language.ones_like": "tl.full",
    "triton.language.empty": "tl.zeros",
    "triton.language.concatenate": "tl.cat or tl.join",
    "triton.language.matmul": "tl.dot",
    "triton.language.mean": "tl.sum divided by the count",
    "triton.language.pow": "libdevice.pow",
    "triton.language.tanh": "libdevice.tanh",
    "triton.language.round": "libdevice.round",
    "triton.language.isnan": "x != x",
    "triton.language.libdevice": "triton.language.extra.libdevice",
    "triton.language.math.pow": "libdevice.pow",
    "triton.language.math.tanh": "libdevice.tanh",
    "triton.language.math.max": "tl.maximum",
    "triton.language.math.min": "tl.minimum",
    "triton.language.float8e4": "tl.float8e4nv",
    "triton.autotuning": "triton.autotune",
    "triton.ops": "a kernel of your own: triton.ops was removed",
}


@rule(
    "TP501",
    "unknown-name",
    targets=("cuda:*", "hip:*", "interpreter"),
    link="https://triton-lang.org/main/python-api/triton.language.html",
    bad="""
import triton, triton.language as tl

@triton.jit
def transpose_kernel(x_ptr, y_ptr, N: tl.constexpr):
    at = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(y_ptr + at, tl.transpose(tl.load(x_ptr + at)))  # here
""",
    good="""
import triton, triton.language as tl

@triton.jit
def transpose_kernel(x_ptr, y_ptr, N: tl.constexpr):
    at = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(y_ptr + at, tl.trans(tl.load(x_ptr + at)))
""",
)
def unknown_name(source: Source) -> Iterator[Hit]:
    """A name that no supported release of Triton has.

    It raises AttributeError, in a kernel only once it is compiled. Names asked for by `hasattr`, in a `try` or under
    a test of the version are not reported.
    """
    asked = _asked_for(source)
    for node in source.nodes:
        for path in _paths(source, node):
            space, _, name = path.rpartition(".")
            if space not in _SPACES or path in known().names or name in asked or name.startswith("__"):
                continue
            if not (is_guarded(source, node) or in_vendor_branch(source, node)):
                advice = f"; use {INSTEAD[path]}" if path in INSTEAD else ""
                yield Hit(node, f"{path} does not exist in Triton {_range()}{advice}")


_SPACES = ("triton", "triton.language", "triton.language.math")


def _paths(source: Source, node: ast.AST) -> Iterator[str]:
    """Yield what a node asks Triton for: `tl.ones`, `from triton.language import ones`."""
    if isinstance(node, ast.Attribute) and source.names.resolve(node.value) in _SPACES:
        yield source.names.resolve(node)
    elif isinstance(node, ast.ImportFrom) and not node.level and node.module in _SPACES:
        yield from (f"{node.module}.{a.name}" for a in node.names if a.name != "*")


def _asked_for(source: Source) -> set[str]:
    calls = (
        n
        for n in source.nodes
        if isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.func.id in ("hasattr", "getattr")
    )
    return {str(c.args[1].value) for c in calls if len(c.args) > 1 and isinstance(c.args[1], ast.Constant)}


def _range() -> str:
    return f"{known().releases[0]} to {known().releases[-1]}"


@rule(
    "TP502",
    "block-pointer",
    targets=("cuda:*", "hip:*", "interpreter"),
    link="https://triton-lang.org/main/python-api/generated/triton.language.make_tensor_descriptor.html",
    bad="""
import triton, triton.language as tl

@triton.jit
def copy_kernel(x_ptr, y_ptr, m, n, BLOCK: tl.constexpr):
    x = tl.make_block_ptr(x_ptr, (m, n), (n, 1), (0, 0), (BLOCK, BLOCK), (1, 0))  # here
    y = tl.make_block_ptr(y_ptr, (m, n), (n, 1), (0, 0), (BLOCK, BLOCK), (1, 0))
    tl.store(y, tl.load(x, boundary_check=(0, 1)), boundary_check=(0, 1))
""",
    good="""
import triton, triton.language as tl

@triton.jit
def copy_kernel(x_ptr, y_ptr, m, n, BLOCK: tl.constexpr):
    rows, columns = tl.arange(0, BLOCK), tl.arange(0, BLOCK)
    at = rows[:, None] * n + columns[None, :]
    mask = (rows[:, None] < m) & (columns[None, :] < n)
    tl.store(y_ptr + at, tl.load(x_ptr + at, mask=mask), mask=mask)
""",
)
def block_pointer(source: Source) -> Iterator[Hit]:
    """Block pointers, which Triton 3.9 has removed.

    `tl.make_block_ptr` raises NotImplementedError there, and `tl.advance` is gone. Use pointers with masks, or tensor
    descriptors. Reported once for each kernel.
    """
    for kernel in source.kernels:
        calls = [
            n for n in source.nodes_of(kernel)
            if isinstance(n, ast.Call) and source.names.language(n.func) in ("make_block_ptr", "advance")
            and not is_guarded(source, n)
        ]  # fmt: skip
        if calls:
            first = min(calls, key=lambda n: (n.lineno, n.col_offset))
            more = f" ({len(calls)} calls in {kernel.name})" if len(calls) > 1 else ""
            yield Hit(first, f"{ast.unparse(first.func)}: block pointers were removed in Triton 3.9{more}")


@rule(
    "TP503",
    "fast-flush",
    link="https://triton-lang.org/main/python-api/generated/triton.testing.do_bench.html",
    bad="""
import triton

def timed(launch):
    return triton.testing.do_bench(launch, fast_flush=True)  # here
""",
    good="""
import triton

def timed(launch):
    return triton.testing.do_bench(launch, warmup=25, rep=100)
""",
)
def fast_flush(source: Source) -> Iterator[Hit]:
    """`fast_flush` is given to `do_bench`.

    The argument was removed, so that the call raises TypeError; the cache is flushed anyway.
    """
    for node in source.nodes:
        if isinstance(node, ast.keyword) and node.arg == "fast_flush":
            call = source.parents[node]
            name = ast.unparse(call.func) if isinstance(call, ast.Call) else ""
            if name.split(".")[-1].startswith("do_bench") and not is_guarded(source, node):
                yield Hit(node, "do_bench has no fast_flush: the cache is flushed anyway; leave it out")


@rule(
    "TP504",
    "string-argument",
    link="https://triton-lang.org/main/python-api/generated/triton.language.program_id.html",
    bad="""
import triton, triton.language as tl

@triton.jit
def index_kernel(out_ptr):
    tl.store(out_ptr + tl.program_id(0), tl.program_id("0"))  # here
""",
    good="""
import triton, triton.language as tl

@triton.jit
def index_kernel(out_ptr):
    tl.store(out_ptr + tl.program_id(0), tl.program_id(0))
""",
)
def string_argument(source: Source) -> Iterator[Hit]:
    """A string where the language takes a number.

    `tl.program_id("0")` and `tl.arange("0", BLOCK)` are compile errors.
    """
    for node in source.nodes:
        if isinstance(node, ast.Call) and source.names.language(node.func) in ("program_id", "num_programs", "arange"):
            for argument in (*node.args, *(k.value for k in node.keywords)):
                if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                    yield Hit(argument, f"{ast.unparse(node)}: a number is needed, not {argument.value!r}")


@rule(
    "TP505",
    "run-time-shape",
    link="https://triton-lang.org/main/python-api/generated/triton.language.arange.html",
    bad="""
import triton, triton.language as tl

@triton.jit
def copy_kernel(x_ptr, y_ptr, head_dim):
    offsets = tl.arange(0, head_dim)  # here
    tl.store(y_ptr + offsets, tl.load(x_ptr + offsets))
""",
    good="""
import triton, triton.language as tl

@triton.jit
def copy_kernel(x_ptr, y_ptr, head_dim, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    mask = offsets < head_dim
    tl.store(y_ptr + offsets, tl.load(x_ptr + offsets, mask=mask), mask=mask)
""",
)
def run_time_shape(source: Source) -> Iterator[Hit]:
    """The shape of a block is a run-time argument.

    Shapes are constants: the front end refuses it. Pass a `tl.constexpr`, the next power of two, and mask the rest.
    """
    for kernel in source.kernels:
        if kernel.helper:  # a helper's arguments may be constants of its caller
            continue
        stored = {n.id for n in source.nodes_of(kernel) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        arguments = {p.name for p in kernel.parameters if not p.constant} - stored
        for node in source.nodes_of(kernel):
            for name in _shape_names(source, node):
                if name in arguments:
                    yield Hit(node, f"{name} is a run-time argument; the shape of a block must be tl.constexpr")


def _shape_names(source: Source, node: ast.AST) -> Iterator[str]:
    """Names that stand alone in the shape of a block."""
    if isinstance(node, ast.Call):
        function = source.names.language(node.func)
        shape = node.args if function == "arange" else node.args[:1] if function in ("zeros", "full") else []
        parts = (e for s in shape for e in (s.elts if isinstance(s, (ast.Tuple, ast.List)) else [s]))
        yield from (p.id for p in parts if isinstance(p, ast.Name))


@rule(
    "TP506",
    "not-a-power-of-two",
    targets=("cuda:*", "hip:*", "interpreter"),
    link="https://github.com/triton-lang/triton/issues/3722",
    bad="""
import triton, triton.language as tl

@triton.jit
def increment_kernel(x_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(x_ptr + offsets, tl.load(x_ptr + offsets) + 1)

def increment_(x):
    increment_kernel[(1,)](x, BLOCK=96)  # here
""",
    good="""
import triton, triton.language as tl

@triton.jit
def increment_kernel(x_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(x_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) + 1, mask=mask)

def increment_(x):
    increment_kernel[(1,)](x, 96, BLOCK=128)
""",
)
def not_a_power_of_two(source: Source) -> Iterator[Hit]:
    """`tl.arange` over a count that is no power of two.

    The front end refuses it on GPUs and in the interpreter; Ascend takes it. Use the next power of two and a mask.
    """
    for kernel in source.kernels:
        for node in source.nodes_of(kernel):
            if not isinstance(node, ast.Call) or source.names.language(node.func) != "arange" or len(node.args) != 2:
                continue
            start, stop = source.constants.literal(node.args[0]), node.args[1]
            if isinstance(stop, ast.Name) and kernel.parameter(stop.id) is not None:
                counts = list(source.launches.values(kernel, stop.id))
            else:
                counts = [(source.constants.literal(stop), stop)]
            for count, place in counts:
                if isinstance(count, int) and isinstance(start, int) and (count - start) & (count - start - 1):
                    yield Hit(place, f"tl.arange over {count - start} lanes: a power of two is needed")
