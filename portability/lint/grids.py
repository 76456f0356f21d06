"""TP2, continued: grids, whose size data decides, and whose axes a kernel may forget."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from portability.lint.arguments import keyword
from portability.lint.model import Hit, rule
from portability.lint.source import Kernel, Source

MOST_PROGRAMS = 65_535  # along y or z


@rule(
    "TP202",
    "grid-axis-from-data",
    targets=("cuda:*", "npu:*"),
    branches=True,
    link="https://github.com/fla-org/flash-linear-attention/issues/172",
    bad="""
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
""",
    good="""
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
""",
)
def grid_axis_from_data(source: Source) -> Iterator[Hit]:
    """A size of the data lies whole on the second or third axis of the grid.

    CUDA takes at most 65,535 programs there, and Ascend that many in all. Put the batch on the first axis, or fold
    the axes into one. Sizes that are divided by a block, bounded, or heads of a model are not reported.
    """
    for launch in source.launches.all:
        for axis, size in enumerate(source.launches.grid(launch)[1:3], start=1):
            name, number = "yz"[axis - 1], source.constants.literal(size)
            if isinstance(number, int) and number > MOST_PROGRAMS:
                yield Hit(size, f"grid axis {name} is {number:,}; at most 65,535 programs lie along it")
            elif source.launches.varies(size):
                yield Hit(size, f"grid axis {name} is {ast.unparse(size)}, which data can take past 65,535")


@rule(
    "TP209",
    "unread-grid-axis",
    link="https://triton-lang.org/main/python-api/generated/triton.language.program_id.html",
    bad="""
import triton, triton.language as tl

@triton.jit
def negate_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(y_ptr + offsets, -tl.load(x_ptr + offsets, mask=mask), mask=mask)

def negate(x, y, heads):
    negate_kernel[(triton.cdiv(x.numel(), 256), heads)](x, y, x.numel(), BLOCK=256)  # here
""",
    good="""
import triton, triton.language as tl

@triton.jit
def negate_kernel(x_ptr, y_ptr, n, stride, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    head = tl.program_id(1).to(tl.int64) * stride
    mask = offsets < n
    tl.store(y_ptr + head + offsets, -tl.load(x_ptr + head + offsets, mask=mask), mask=mask)

def negate(x, y, heads):
    negate_kernel[(triton.cdiv(x.shape[1], 256), heads)](x, y, x.shape[1], x.stride(0), BLOCK=256)
""",
)
def unread_grid_axis(source: Source) -> Iterator[Hit]:
    """The grid has an axis whose index the kernel never asks for.

    All programs along it do the same work on the same addresses: heads or batches that share one output, where the
    order of programs decides. Kernels that call helpers which are not in the file, or may take their place from what an
    atomic returns, are not reported.
    """
    for launch in source.launches.all:
        axes = _axes_read(source, launch.kernel) if launch.kernel is not None else None
        for axis, size in enumerate(source.launches.grid(launch)[:3]):
            if axes is not None and axis not in axes and source.constants.literal(size) != 1:
                text = ast.unparse(size)
                yield Hit(size, f"grid axis {'xyz'[axis]} is {text}, and the kernel never reads tl.program_id({axis})")


def _axes_read(source: Source, kernel: Kernel) -> set[int] | None:
    """Return the axes whose index a kernel or a helper of this file asks for; None where that cannot be told."""
    axes: set[int] = set()
    for function in source.reachable(kernel):
        nodes = list(source.nodes_of(function))
        alone = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}  # calls whose result nobody takes
        for node in nodes:
            if not isinstance(node, ast.Call):
                continue
            if (source.names.language(node.func) or "").startswith("atomic_") and id(node) not in alone:
                return None
            if source.names.language(node.func) == "program_id":
                axis = source.constants.literal(node.args[0] if node.args else keyword(node, "axis"))
                if not isinstance(axis, int):
                    return None
                axes.add(axis)
            elif _may_be_helper(source, node):
                return None
    return axes


def _may_be_helper(source: Source, call: ast.Call) -> bool:
    """Return whether a call may lead to a function of another file."""
    if isinstance(call.func, ast.Name):
        return source.kernel(call.func.id) is None and call.func.id in source.names.alternatives
    return bool(path := source.names.resolve(call.func)) and not path.startswith("triton.")
