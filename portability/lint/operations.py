"""What the operations of the language give: arithmetic, reductions, products, shapes and casts."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from portability.lint.arguments import argument, keyword
from portability.lint.values import (
    NOTHING,
    UNKNOWN,
    ZEROS,
    Dim,
    Dot,
    Reduction,
    Value,
    broadcast,
    combined,
)

if TYPE_CHECKING:
    from portability.lint.flow import Flow

REDUCTIONS = frozenset({"sum", "max", "min", "argmax", "argmin", "xor_sum", "reduce", "reduce_or"})
_FLOAT_FUNCTIONS = frozenset(
    {"cos", "erf", "exp", "exp2", "log", "log2", "rsqrt", "sigmoid", "sin", "softmax", "sqrt", "sqrt_rn", "div_rn"}
)
_ALONG = frozenset({"cumsum", "cumprod", "flip", "sort", "softmax", "associative_scan"})  # the rest is axes and options
_OTHERS = {"abs", "ceil", "fdiv", "floor", "fma", "umulhi", "add", "sub", "mul", "clamp", "maximum", "minimum"}
ELEMENTWISE = _FLOAT_FUNCTIONS | _ALONG | _OTHERS | {"broadcast"}


class Operations:
    """Evaluates the operations of one kernel's flow."""

    def __init__(self, flow: Flow) -> None:
        self.flow = flow
        self.names = flow.source.names

    def values(self, node: ast.Call) -> list[Value]:
        """Return the values of all arguments of a call."""
        return [self.flow.value(a) for a in (*node.args, *(k.value for k in node.keywords))]

    def elementwise(self, node: ast.Call, name: str, args: list[ast.expr]) -> Value:
        """An element-wise function, or one along an axis that keeps the shape."""
        operands = args[:1] if name in _ALONG else args
        values = [self.flow.value(a) for a in operands]
        self.flow.arguments[node] = tuple(values)
        if not values:
            return UNKNOWN
        out = combined(values)
        if name == "softmax" and out.dims:
            self.flow.reductions[node] = Reduction(node, name, values[0], (0,))
        if name in _FLOAT_FUNCTIONS:
            out = replace(
                out, dtype="float64" if out.dtype == "float64" else "float32", exponential=name in ("exp", "exp2")
            )
        if name == "minimum" and any(v.scalar for v in values):
            out = out.inside()
        if name in ("maximum", "minimum") and not any(v.scalar for v in values):
            out = replace(out, filled=NOTHING)
        return out

    def where(self, node: ast.Call, args: list[ast.expr]) -> Value:
        """`tl.where`: lanes that the condition covers are defined again."""
        if len(args) != 3:
            self.values(node)
            return UNKNOWN
        condition, first, second = (self.flow.value(a) for a in args)
        out = combined([first, second])
        chosen = all(v.kept or not v.loads for v in (first, second))
        out = replace(out, dims=broadcast(condition.dims, first.dims, second.dims), kept=chosen)
        if condition.scalar:
            return out
        out = replace(out, filled=NOTHING, undefined=frozenset())
        return out.inside() if first.integer and second.number is not None else out

    def reduction(self, node: ast.Call, name: str, args: list[ast.expr]) -> Value:
        """A reduction, which is kept for the rules."""
        operand = self.flow.value(args[0]) if args else UNKNOWN
        for extra in args[1:]:
            self.flow.value(extra)
        axis = self.flow.source.constants.literal(argument(node, args, 1, "axis"))
        given = argument(node, args, 1, "axis") is not None
        if operand.dims is None or (given and not isinstance(axis, int)):
            return replace(UNKNOWN, undefined=operand.undefined if operand.dims is not None else frozenset())
        rank = len(operand.dims)
        over = (int(axis) % rank,) if isinstance(axis, int) and rank else tuple(range(rank))
        self.flow.reductions[node] = Reduction(node, name, operand, over)
        gone: Dim = frozenset().union(*(operand.dims[i] for i in over))
        kept = self.flow.source.constants.literal(keyword(node, "keep_dims")) is True
        dims = tuple(NOTHING if i in over else d for i, d in enumerate(operand.dims) if kept or i not in over)
        index = name.startswith("arg")
        return Value(
            dims=dims, dtype="int32" if index else operand.dtype, filled=operand.filled - gone,
            undefined=frozenset(u for u in operand.undefined if not u.axes <= gone), loads=operand.loads,
        )  # fmt: skip

    def dot(self, node: ast.Call, args: list[ast.expr]) -> Value:
        """`tl.dot`, which is kept for the rules."""
        left_node, right_node = argument(node, args, 0, "input"), argument(node, args, 1, "other")
        if left_node is None or right_node is None:
            return UNKNOWN
        left, right = self.flow.value(left_node), self.flow.value(right_node)
        accumulator = argument(node, args, 2, "acc")
        start = self.flow.value(accumulator) if accumulator is not None else Value(dims=(), kinds=ZEROS)
        self.flow.dots[node] = Dot(node, left, right)
        dtype = self.dtype(keyword(node, "out_dtype")) or "float32"
        if left.dims is None or right.dims is None or len(left.dims) != 2 or len(right.dims) != 2:
            return Value(dims=(NOTHING, NOTHING), dtype=dtype)
        rows, columns = left.dims[0], right.dims[1]
        kept = frozenset(u for u in left.undefined | right.undefined if not u.axes <= left.dims[1] | right.dims[0])
        filled = (left.filled & rows) | (right.filled & columns) if start.kinds == ZEROS else NOTHING
        return Value(dims=(rows, columns), dtype=dtype, undefined=kept, filled=filled, loads=left.loads | right.loads)

    def cast_function(self, node: ast.Call, args: list[ast.expr]) -> Value:
        """`tl.cast(x, dtype)`."""
        value = self.flow.value(args[0]) if args else UNKNOWN
        return self.cast(node, value, argument(node, args, 1, "dtype"))

    def cast(self, node: ast.Call, value: Value, dtype: ast.expr | None) -> Value:
        """`x.to(dtype)`; a product that is widened too late is kept for the rules."""
        known = self.dtype(dtype)
        if known == "int64" and value.product is not None:
            self.flow.late_casts[node] = value.product
        return replace(value, dtype=known, raw=False, number=None, product=None if known == "int64" else value.product)

    def trans(self, node: ast.Call, args: list[ast.expr]) -> Value:
        """`tl.trans` or `tl.permute` without an order."""
        value = self.flow.value(args[0]) if args else UNKNOWN
        if value.dims is None or len(args) > 1:
            return UNKNOWN
        return replace(value, dims=value.dims[::-1])

    def expand_dims(self, node: ast.Call, args: list[ast.expr]) -> Value:
        """`tl.expand_dims(x, axis)`."""
        value = self.flow.value(args[0]) if args else UNKNOWN
        axis = self.flow.source.constants.literal(argument(node, args, 1, "axis"))
        if value.dims is None or not isinstance(axis, int):
            return UNKNOWN
        at = axis % (len(value.dims) + 1)
        return replace(value, dims=(*value.dims[:at], NOTHING, *value.dims[at:]))

    def broadcast_to(self, node: ast.Call, args: list[ast.expr]) -> Value:
        """`tl.broadcast_to` of the same rank."""
        value = self.flow.value(args[0]) if args else UNKNOWN
        shape = args[1].elts if len(args) == 2 and isinstance(args[1], (ast.Tuple, ast.List)) else args[1:]
        return value if value.dims is not None and len(shape) == len(value.dims) else replace(value, dims=None)

    def reshape(self, node: ast.Call, args: list[ast.expr]) -> Value:
        """A reshape, after which no axis is known."""
        value = self.flow.value(args[0]) if args else UNKNOWN
        return Value(dtype=value.dtype, kinds=value.kinds)

    def dtype(self, node: ast.expr | None) -> str:
        """Return "float32" for `tl.float32`, "" for what is not written out."""
        name = self.names.language(node)
        return {"int1": "bool"}.get(name, name) if name.removeprefix("u").startswith(("int", "float", "bfloat")) else ""
