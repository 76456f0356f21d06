"""TP4: addresses, masks and lanes that hold nothing."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from portability.lint.flow import Flow
from portability.lint.model import Hit, rule
from portability.lint.source import Kernel, Source
from portability.lint.values import Access, Axis, Dim

# Tensors with an element or a row a program, or a bin, and counts of such: far below 2³¹ whatever the data.
_SMALL = re.compile(
    r"(^|_)(d?w|d?b|dgamma|dbeta|grad_(weight|bias)|partial|part|bins?|hist|counts?|cnt|locks?|status|lookback|mean|var|rstd"
    r"|lse|pos|idx|index|indices|ids|lens?|scores?|sums?|stats?|buf\w*|workspace|mid\w*)(_|$)",
    re.IGNORECASE,
)
_COUNT = re.compile(r"\b(num_|n_blocks|bins?_|\w*num_blocks|\w*_parts?\b|part_|\w+_per_)", re.IGNORECASE)
_HEAD = re.compile(r"(\w*head\w*|\w+_h|h|h_?idx)$", re.IGNORECASE)  # a token's heads lie close together
_ROW = re.compile(r"row|token|batch|_b?m\b|\brm\b|\bm\b", re.IGNORECASE)  # columns of a block lie close together
_STRIDE = re.compile(r"stride|pitch|\bld\w?\b|numel|size", re.IGNORECASE)


@rule(
    "TP401",
    "int32-offset",
    link="https://github.com/fla-org/flash-linear-attention/issues/1082",
    bad="""
import triton, triton.language as tl

@triton.jit
def row_kernel(x_ptr, y_ptr, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + row * stride + offsets, mask=mask)  # here
    tl.store(y_ptr + row * stride + offsets, x, mask=mask)
""",
    good="""
import triton, triton.language as tl

@triton.jit
def row_kernel(x_ptr, y_ptr, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + row * stride + offsets, mask=mask)
    tl.store(y_ptr + row * stride + offsets, x, mask=mask)
""",
)
def int32_offset(source: Source) -> Iterator[Hit]:
    """A program's index times a run-time stride, in 32 bits, is an address.

    Both are int32, so the product wraps around past 2³¹ elements: a tensor of 4 GiB in float16 is read from the
    wrong place, without an error. Widen the index first: `tl.program_id(0).to(tl.int64)`. The first place of a
    kernel is reported. Products with a block size alone are not, nor are tensors and counts that by their names stay
    small: partial sums, statistics, histograms, locks, heads, numbers of blocks.
    """
    for kernel in source.kernels:
        flow = source.flow(kernel)
        casts = [p for p in flow.late_casts.values() if _STRIDE.search(ast.unparse(p))]
        found = [(p, "the cast to int64 comes after it") for p in casts]
        for access in flow.accesses.values():
            product = access.pointer.product
            if product is None or _SMALL.search(access.pointer.base):
                continue
            text = ast.unparse(product)
            near = product in flow.block_products and not _ROW.search(text)
            if not (near or _COUNT.search(text) or _HEAD.match(ast.unparse(product.left))):
                found.append((product, "it is an address"))
        for product, how in sorted(found, key=lambda f: (f[0].lineno, f[0].col_offset))[:1]:
            text = ast.unparse(product)
            yield Hit(product, f"{text} wraps around past 2³¹ and {how}; widen the index first: .to(tl.int64)")


@rule(
    "TP402",
    "unmasked-store",
    link="https://github.com/triton-lang/triton/issues/10336",
    bad="""
import triton, triton.language as tl

@triton.jit
def double_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(y_ptr + offsets, 2 * x)  # here
""",
    good="""
import triton, triton.language as tl

@triton.jit
def double_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(y_ptr + offsets, 2 * x, mask=offsets < n)
""",
)
def unmasked_store(source: Source) -> Iterator[Hit]:
    """A store without a mask, along an axis that ends inside a block.

    It writes past the tensor, over whatever lies there: seen on one target, silent on another. An axis counts where
    the kernel compares it with a length in another place, or where programs or a loop take it in tiles.
    """
    for kernel in source.kernels:
        flow = source.flow(kernel)
        for access in flow.accesses.values():
            if access.name != "store" or access.mask is not None:
                continue
            ragged = ragged_axes(flow, access.pointer.axes)
            if ragged and not has_masked_branch(source, kernel, access):
                yield Hit(access.node, f"store without a mask along {_named(ragged)}, which may end inside a block")


@rule(
    "TP403",
    "half-masked",
    link="https://github.com/triton-lang/triton/issues/10336",
    bad="""
import triton, triton.language as tl

@triton.jit
def copy_kernel(x_ptr, y_ptr, m, n, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    at = rows[:, None].to(tl.int64) * n + columns[None, :]
    x = tl.load(x_ptr + at, mask=rows[:, None] < m, other=0.0)  # here
    tl.store(y_ptr + at, x, mask=(rows[:, None] < m) & (columns[None, :] < n))
""",
    good="""
import triton, triton.language as tl

@triton.jit
def copy_kernel(x_ptr, y_ptr, m, n, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    at = rows[:, None].to(tl.int64) * n + columns[None, :]
    mask = (rows[:, None] < m) & (columns[None, :] < n)
    tl.store(y_ptr + at, tl.load(x_ptr + at, mask=mask, other=0.0), mask=mask)
""",
)
def half_masked(source: Source) -> Iterator[Hit]:
    """A mask covers one of two dimensions, and the other one ends inside a block too.

    The access then goes past the end of every row: into the next row, or past the tensor. A dimension that a block
    covers exactly (a head dimension) needs no mask and is not reported.
    """
    for kernel in source.kernels:
        flow = source.flow(kernel)
        for access in flow.accesses.values():
            open_axes = _uncovered(access)
            ragged = ragged_axes(flow, open_axes)
            if ragged and not has_masked_branch(source, kernel, access):
                yield Hit(
                    access.node,
                    f"the mask of the {access.name} leaves {_named(ragged)} open, which may end inside a block",
                )


@rule(
    "TP404",
    "undefined-lanes",
    link="https://github.com/triton-lang/triton/issues/9917",
    bad="""
import triton, triton.language as tl

@triton.jit
def sum_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(out_ptr, tl.sum(x, 0))  # here
""",
    good="""
import triton, triton.language as tl

@triton.jit
def sum_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=0.0)
    tl.store(out_ptr, tl.sum(x, 0))
""",
)
def undefined_lanes(source: Source) -> Iterator[Hit]:
    """A masked load without `other` is reduced along the masked axis.

    The lanes that are switched off have no defined value: 0 in the interpreter and often on NVIDIA, what was in the
    register elsewhere. Give `other` the identity of the reduction, or select with `tl.where` first. Each load is
    reported once.
    """
    for kernel in source.kernels:
        flow = source.flow(kernel)
        reduced = [
            (r.node, r.operand, [r.operand.dims[i] for i in r.over]) for r in flow.reductions.values() if r.operand.dims
        ]
        for dot in flow.dots.values():
            if dot.left.dims and dot.right.dims and len(dot.left.dims) == len(dot.right.dims) == 2:
                reduced += [(dot.node, dot.left, [dot.left.dims[1]]), (dot.node, dot.right, [dot.right.dims[0]])]
        seen: set[int] = set()
        for node, operand, dims in reduced:
            gone: Dim = frozenset().union(*dims)
            loads = sorted({u.load.lineno for u in operand.undefined if u.axes & gone} - seen)
            seen.update(loads)
            if loads:
                yield Hit(
                    node, f"reduces lanes that the masked load of line {loads[0]} leaves undefined; give it other="
                )


def ragged_axes(flow: Flow, axes: Dim) -> list[Axis]:
    """Return the axes that may end inside a block, as far as the kernel itself tells."""
    return sorted((a for a in axes if flow.ends_inside(a)), key=lambda a: a.place)


def has_masked_branch(source: Source, kernel: Kernel, access: Access) -> bool:
    """Return whether another branch around the access has the same kind of access: `if EVEN: … else: … mask=`."""
    child: ast.AST = access.node
    for ancestor in source.ancestors(access.node):
        if ancestor is kernel.node:
            return False
        if isinstance(ancestor, ast.If):
            other = ancestor.orelse if child in ancestor.body else ancestor.body if child in ancestor.orelse else []
            calls = [n for s in other for n in ast.walk(s) if isinstance(n, ast.Call)]
            if any(
                c in source.flow(kernel).accesses and source.flow(kernel).accesses[c].name == access.name for c in calls
            ):
                return True
        child = ancestor
    return False


def _uncovered(access: Access) -> Dim:
    """The axes of dimensions that a mask which covers some other dimension leaves open."""
    pointer, mask = access.pointer.dims, access.mask.dims if access.mask is not None else None
    if pointer is None or mask is None or len(mask) > len(pointer) or not any(mask):
        return frozenset()
    padded: tuple[Dim, ...] = (frozenset(),) * (len(pointer) - len(mask)) + mask
    return frozenset().union(*(p for p, m in zip(pointer, padded, strict=True) if p and not m))


def _named(axes: list[Axis]) -> str:
    return " and ".join(f"tl.arange(…, {a.size})" for a in axes)
