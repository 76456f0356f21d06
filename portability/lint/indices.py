"""Indices and constants in a kernel: where a value starts, and how an offset moves an axis."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from portability.lint.values import Axis, Value

if TYPE_CHECKING:
    from portability.lint.source import Parameter

INDICES = {"program", "within", "loop"}  # kinds of a value that differs between programs or turns


def of_parameter(parameter: Parameter, helper: bool) -> Value:
    """Return the value of a parameter: a scalar, or in a helper perhaps a block."""
    dtype = parameter.annotation.split(".")[-1]
    known = dtype if dtype.removeprefix("u").startswith(("int", "float", "bfloat")) and dtype != "int" else ""
    if parameter.constant:
        return Value(dims=(), kinds=frozenset({"constant", f"name:{parameter.name}"}))
    kinds = frozenset({"parameter", f"name:{parameter.name}"})
    return Value(dims=None if helper else (), dtype=known, base=parameter.name, kinds=kinds)


def of_constant(value: object) -> Value:
    """Return the value of a literal."""
    if isinstance(value, bool) or value is None or not isinstance(value, (int, float)):
        return Value(dims=())
    return Value(dims=(), number=value, dtype="int32" if isinstance(value, int) else "float32")


def is_run_time(value: Value) -> bool:
    """Return whether it is a size or stride of the launch: 32 bits wide unless it is itself beyond 2³¹."""
    return value.scalar and "parameter" in value.kinds and value.dtype in ("", "int32") and "load" not in value.kinds


def is_fixed(value: Value) -> bool:
    """Return whether it is a number or a constant, and so the size of a tile and no stride."""
    return value.kinds <= {"constant"} or ("constant" in value.kinds and not value.kinds & {"parameter", "load"})


def with_moved_axes(node: ast.BinOp, out: Value, left: Value, right: Value) -> Value:
    """Return the sum `out`: in `program * BLOCK + tl.arange(0, BLOCK)` the axis is moved, and is one of tiles."""
    for block, offset, written in ((left, right, node.right), (right, left, node.left)):
        if block.dims and offset.scalar and offset.kinds & INDICES and out.dims is not None:
            text = ast.unparse(written)
            return replace(out, dims=tuple(frozenset(_moved(a, offset, text) for a in d) for d in out.dims))
    return out


def _moved(axis: Axis, offset: Value, written: str) -> Axis:
    tiled = axis.size in offset.steps
    moved = tiled or not (offset.base or "stride" in offset.kinds)
    return replace(
        axis, moved=axis.moved + written if moved else axis.moved, tiled=axis.tiled or tiled,
        safe=axis.safe or (tiled and "full" in offset.kinds),
    )  # fmt: skip


def counts_tiles(index: ast.expr) -> bool:
    """Return whether an index is a name or a call, perhaps with a number added; a sum of products numbers rows."""
    if isinstance(index, ast.BinOp) and isinstance(index.op, (ast.Add, ast.Sub)):
        return isinstance(index.right, ast.Constant) or isinstance(index.left, ast.Constant)
    return isinstance(index, (ast.Name, ast.Call))


def is_rounded_down(end: ast.expr, ceilings: set[str]) -> bool:
    """Return whether the end of a loop is a multiple of its step: `n // B * B`, or what a helper made of it.

    ceilings   functions that round up or choose, after which the last tile may be ragged
    """
    nodes = list(ast.walk(end))
    called = {ast.unparse(n.func).split(".")[-1] for n in nodes if isinstance(n, ast.Call)}
    operators = {type(n.op) for n in nodes if isinstance(n, ast.BinOp)}
    return not called <= ceilings or (bool(operators & {ast.FloorDiv, ast.Mod}) and ast.Add not in operators)
