"""TP3, continued: infinities, integers and lanes past the end in mathematical functions."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator

from portability.lint.arguments import argument, keyword
from portability.lint.model import Hit, rule
from portability.lint.source import Kernel, Source


@rule(
    "TP305",
    "finite-minus-infinity",
    link="https://triton-lang.org/main/getting-started/tutorials/02-fused-softmax.html",
    bad="""
import triton, triton.language as tl

@triton.jit
def softmax_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=-1e9)  # here
    e = tl.exp(x - tl.max(x, 0))
    tl.store(y_ptr + offsets, e / tl.sum(e, 0), mask=offsets < n)
""",
    good="""
import triton, triton.language as tl

@triton.jit
def softmax_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=float("-inf"))
    e = tl.exp(x - tl.max(x, 0))
    tl.store(y_ptr + offsets, e / tl.sum(e, 0), mask=offsets < n)
""",
)
def finite_minus_infinity(source: Source) -> Iterator[Hit]:
    """A large negative number stands for -∞.

    It is wrong for values below it, it is out of float16's range, and a row that is masked throughout becomes a
    uniform distribution and not 0 or NaN. Use `float("-inf")`, and guard rows that are masked throughout.
    """
    for kernel in source.kernels:
        for node in source.nodes_of(kernel):
            for place in _fillers(source, node):
                sentinel = (
                    isinstance(source.constants.literal(place), int)
                    and source.names.language(getattr(node, "func", None)) == "load"
                )
                if _is_stand_in(source.constants.literal(place)) and not sentinel:  # of integers, which have no -∞
                    yield Hit(place, f'{ast.unparse(place)} in place of -∞; use float("-inf")')
    for node in source.nodes:
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in ("masked_fill", "masked_fill_")
        ):
            value = argument(node, node.args, 1, "value")
            if value is not None and _is_stand_in(source.constants.literal(value)):
                yield Hit(value, f'{ast.unparse(value)} in place of -∞, and beyond float16; use float("-inf")')


def _fillers(source: Source, node: ast.AST) -> Iterator[ast.expr]:
    """Yield where a value for "nothing here" is given: other=, the arms of where, full, the first maximum."""
    if isinstance(node, ast.Call):
        name = source.names.language(node.func)
        places = {"where": node.args[1:3], "full": node.args[1:2], "load": node.args[2:3]}.get(name, [])
        yield from places
        for word in ("other", "value") if name in ("load", "full") else ():
            value = keyword(node, word)
            if value is not None:
                yield value
    elif isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Sub, ast.Add)) and _is_zeros(source, node.left):
        sign = isinstance(node.op, ast.Sub)
        yield ast.copy_location(ast.UnaryOp(ast.USub(), node.right), node.right) if sign else node.right
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        yield from (node.left, node.right)  # (1 - mask) * -1e9
    elif isinstance(node, ast.Assign) and isinstance(node.value, ast.UnaryOp):
        yield node.value


def _is_zeros(source: Source, node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and source.names.language(node.func) == "zeros"


def _is_stand_in(value: object) -> bool:
    """A float beyond -1,000, or a round integer: the least value of an integer dtype is exact and stays."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value) or value > -1000:
        return False
    return isinstance(value, float) or value in (-10_000, -100_000, -1_000_000, -1_000_000_000)


@rule(
    "TP306",
    "integer-root",
    link="https://triton-lang.org/main/python-api/generated/triton.language.sqrt.html",
    bad="""
import triton, triton.language as tl

@triton.jit
def scale_kernel(x_ptr, n, HEAD_DIM: tl.constexpr):
    offsets = tl.arange(0, HEAD_DIM)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(x_ptr + offsets, x / tl.sqrt(HEAD_DIM), mask=offsets < n)  # here
""",
    good="""
import triton, triton.language as tl

@triton.jit
def scale_kernel(x_ptr, n, scale, HEAD_DIM: tl.constexpr):
    offsets = tl.arange(0, HEAD_DIM)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(x_ptr + offsets, x * scale, mask=offsets < n)
""",
)
def integer_root(source: Source) -> Iterator[Hit]:
    """`tl.sqrt`, `tl.rsqrt`, `tl.exp` or `tl.log` of an integer.

    The front end refuses an integer, and an integer constant ends in a raw parser error. Pass the scale in as a
    float, or convert with `.to(tl.float32)`.
    """
    for kernel in source.kernels:
        flow = source.flow(kernel)
        sizes = _sizes(source, kernel) | flow.lengths
        for node, values in flow.arguments.items():
            name = source.names.language(node.func)
            if name not in ("sqrt", "rsqrt", "sqrt_rn", "exp", "exp2", "log", "log2") or not values or not node.args:
                continue
            value, given = values[0], node.args[0]
            size = isinstance(given, ast.Name) and kernel.parameter(given.id) is not None and (
                given.id in sizes or _DIMENSION.fullmatch(given.id) is not None
            )  # fmt: skip
            if value.integer or size:
                yield Hit(node, f"tl.{name} of the integer {ast.unparse(given)} is refused; pass a float")


_DIMENSION = re.compile(r"head_?(dim|size)|d_?(head|k|model)|hidden_?(dim|size)|n_?elements?", re.IGNORECASE)


def _sizes(source: Source, kernel: Kernel) -> set[str]:
    """Parameters that stand alone as the end of an arange or in a shape: whole numbers."""
    names: set[str] = set()
    for node in source.nodes_of(kernel):
        if isinstance(node, ast.Call) and source.names.language(node.func) in ("arange", "zeros", "full"):
            shape = node.args[0] if source.names.language(node.func) != "arange" else None
            parts = shape.elts if isinstance(shape, (ast.Tuple, ast.List)) else node.args[:2]
            names |= {p.id for p in parts if isinstance(p, ast.Name)}
    return names


@rule(
    "TP307",
    "softmax-axis",
    link="https://triton-lang.org/main/python-api/generated/triton.language.softmax.html",
    bad="""
import triton, triton.language as tl

@triton.jit
def rows_kernel(x_ptr, y_ptr, M: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(y_ptr + at, tl.softmax(tl.load(x_ptr + at)))  # here
""",
    good="""
import triton, triton.language as tl

@triton.jit
def rows_kernel(x_ptr, y_ptr, M: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    x = tl.load(x_ptr + at)
    e = tl.exp(x - tl.max(x, axis=1, keep_dims=True))
    tl.store(y_ptr + at, e / tl.sum(e, axis=1, keep_dims=True))
""",
)
def softmax_axis(source: Source) -> Iterator[Hit]:
    """`tl.softmax` of two dimensions without an axis.

    It normalises axis 0, so that columns sum to one and not rows; `dim` exists only since Triton 3.6. Write maximum,
    exponential and sum.
    """
    for kernel in source.kernels:
        for node, values in source.flow(kernel).arguments.items():
            if source.names.language(node.func) == "softmax" or (
                isinstance(node.func, ast.Attribute) and node.func.attr == "softmax"
            ):
                method = not source.names.language(node.func)
                given = keyword(node, "dim") is not None or len(node.args) > (0 if method else 1)
                if values and values[0].dims is not None and len(values[0].dims) > 1 and not given:
                    yield Hit(node, "tl.softmax without an axis normalises axis 0: columns, not rows")


@rule(
    "TP308",
    "padded-scores",
    link="https://triton-lang.org/main/getting-started/tutorials/06-fused-attention.html",
    bad="""
import triton, triton.language as tl

@triton.jit
def attention_kernel(q_ptr, k_ptr, o_ptr, n_keys, BLOCK: tl.constexpr, D: tl.constexpr):
    rows, keys, d = tl.arange(0, BLOCK), tl.arange(0, BLOCK), tl.arange(0, D)
    q = tl.load(q_ptr + rows[:, None] * D + d[None, :])
    k = tl.load(k_ptr + keys[:, None] * D + d[None, :], mask=keys[:, None] < n_keys, other=0.0)
    scores = tl.dot(q, tl.trans(k))
    p = tl.exp(scores - tl.max(scores, 1)[:, None])
    tl.store(o_ptr + rows, tl.sum(p, 1))  # here
""",
    good="""
import triton, triton.language as tl

@triton.jit
def attention_kernel(q_ptr, k_ptr, o_ptr, n_keys, BLOCK: tl.constexpr, D: tl.constexpr):
    rows, keys, d = tl.arange(0, BLOCK), tl.arange(0, BLOCK), tl.arange(0, D)
    q = tl.load(q_ptr + rows[:, None] * D + d[None, :])
    k = tl.load(k_ptr + keys[:, None] * D + d[None, :], mask=keys[:, None] < n_keys, other=0.0)
    scores = tl.where(keys[None, :] < n_keys, tl.dot(q, tl.trans(k)), float("-inf"))
    p = tl.exp(scores - tl.max(scores, 1)[:, None])
    tl.store(o_ptr + rows, tl.sum(p, 1))
""",
)
def padded_scores(source: Source) -> Iterator[Hit]:
    """Exponentials are summed over lanes past the end.

    A mask on the load fills them with a number, whose exponential is not 0: the result is right for full blocks and
    wrong for ragged ones. Mask the scores too: `tl.where(mask, scores, float("-inf"))`.
    """
    for kernel in source.kernels:
        for node, reduction in source.flow(kernel).reductions.items():
            operand = reduction.operand
            if reduction.name != "sum" or not operand.exponential or operand.dims is None:
                continue
            if any(operand.dims[i] & operand.filled for i in reduction.over):
                yield Hit(
                    node, "the sum counts the exponentials of lanes past the end; mask the scores with -inf first"
                )
