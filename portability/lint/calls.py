"""What a call in a kernel gives: functions of the language, methods of a tensor, libdevice."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from portability.lint.values import (
    NOTHING,
    UNKNOWN,
    ZEROS,
    Access,
    Axis,
    Dim,
    Dot,
    Reduction,
    Undefined,
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
_OTHERS = {
    "abs",
    "ceil",
    "fdiv",
    "floor",
    "fma",
    "umulhi",
    "add",
    "sub",
    "mul",
    "clamp",
    "maximum",
    "minimum",
    "broadcast",
}
ELEMENTWISE = _FLOAT_FUNCTIONS | _ALONG | _OTHERS
_METHODS = frozenset({"reshape", "view", "ravel", "trans", "permute", "expand_dims", "broadcast_to", "cast"})
_HUGE = 1000.0  # the exponential of a filler beyond it is 0, or infinite
_HINTS = frozenset({"multiple_of", "max_contiguous", "max_constancy", "debug_barrier"})


class Calls:
    """Evaluates the calls of one kernel's flow."""

    def __init__(self, flow: Flow) -> None:
        self.flow = flow
        self.names = flow.source.names
        self._handlers: dict[str, Callable[[ast.Call, list[ast.expr]], Value]] = {
            "program_id": self._program_id, "num_programs": self._num_programs, "arange": self._arange,
            "zeros": self._zeros, "full": self._full, "zeros_like": self._zeros_like,
            "load": self._load, "store": self._store, "where": self._where, "dot": self._dot,
            "cast": self._cast_function,
            "trans": self._trans, "permute": self._trans, "expand_dims": self._expand_dims,
            "broadcast_to": self._broadcast_to, "reshape": self._reshape, "view": self._reshape, "ravel": self._reshape,
        }  # fmt: skip

    def value(self, node: ast.Call) -> Value:
        """Return what is known of a call's result, and keep accesses, reductions and products."""
        name = self.names.language(node.func)
        if name:
            return self._function(node, name, list(node.args))
        if self.names.libdevice(node.func) or self.names.resolve(node.func).split(".")[-1:] == ["libdevice"]:
            return combined(self._values(node), dtype="float32")
        if isinstance(node.func, ast.Name):
            return self._builtin(node, node.func.id)
        if isinstance(node.func, ast.Attribute) and not self.names.resolve(node.func):
            return self._method(node, node.func)
        self._values(node)
        return UNKNOWN

    def _values(self, node: ast.Call) -> list[Value]:
        return [self.flow.value(a) for a in (*node.args, *(k.value for k in node.keywords))]

    def _builtin(self, node: ast.Call, name: str) -> Value:
        values = self._values(node)
        if name in ("min", "max", "abs") and values:
            return combined(values)
        if name == "float":
            number = self.flow.source.constants.literal(node)
            return Value(dims=(), number=number if isinstance(number, float) else None, dtype="float32")
        return UNKNOWN

    def _method(self, node: ast.Call, function: ast.Attribute) -> Value:
        receiver = self.flow.value(function.value)
        if function.attr == "to":
            return self._cast(node, receiver, node.args[0] if node.args else keyword(node, "dtype"))
        if receiver.dims is None:
            self._values(node)
            return UNKNOWN
        if function.attr in REDUCTIONS | ELEMENTWISE or function.attr in _METHODS:
            return self._function(node, function.attr, [function.value, *node.args])
        self._values(node)
        return UNKNOWN

    def _function(self, node: ast.Call, name: str, args: list[ast.expr]) -> Value:
        if name in REDUCTIONS:
            return self._reduction(node, name, args)
        if name.startswith("atomic_"):
            return self._access(node, name, args)
        if name in ELEMENTWISE:
            return self._elementwise(node, name, args)
        if name in self._handlers:
            return self._handlers[name](node, args)
        values = self._values(node)
        self.flow.arguments[node] = tuple(values)
        return values[0] if name in _HINTS and values else UNKNOWN

    # --------------------------------------------------------------------------- programs and creation

    def _program_id(self, node: ast.Call, args: list[ast.expr]) -> Value:
        return Value(dims=(), dtype="int32", kinds=frozenset({"program"}))

    def _num_programs(self, node: ast.Call, args: list[ast.expr]) -> Value:
        return Value(dims=(), dtype="int32", kinds=frozenset({"grid"}))

    def _arange(self, node: ast.Call, args: list[ast.expr]) -> Value:
        self.flow.arguments[node] = tuple(self.flow.value(a) for a in args)
        statement = next((a for a in self.flow.source.ancestors(node) if isinstance(a, ast.stmt)), None)
        inline = not isinstance(statement, (ast.Assign, ast.AnnAssign))
        axis = Axis((node.lineno, node.col_offset), size=ast.unparse(args[-1]) if args else "", inline=inline)
        return Value(dims=(frozenset({axis}),), dtype="int32")

    def _zeros(self, node: ast.Call, args: list[ast.expr]) -> Value:
        return replace(self._created(argument(node, args, 0, "shape"), argument(node, args, 1, "dtype")), kinds=ZEROS)

    def _full(self, node: ast.Call, args: list[ast.expr]) -> Value:
        value = argument(node, args, 1, "value")
        if value is not None:
            self.flow.value(value)
        return self._created(argument(node, args, 0, "shape"), argument(node, args, 2, "dtype"))

    def _zeros_like(self, node: ast.Call, args: list[ast.expr]) -> Value:
        like = self.flow.value(args[0]) if args else UNKNOWN
        return Value(dims=None if like.dims is None else (NOTHING,) * len(like.dims), dtype=like.dtype)

    def _created(self, shape: ast.expr | None, dtype: ast.expr | None) -> Value:
        known = isinstance(shape, (ast.Tuple, ast.List))
        dims = (NOTHING,) * len(shape.elts) if isinstance(shape, (ast.Tuple, ast.List)) else None
        return Value(dims=dims if known else None, dtype=self.dtype(dtype))

    # ------------------------------------------------------------------------------------------- memory

    def _load(self, node: ast.Call, args: list[ast.expr]) -> Value:
        access = self._kept(node, "load", args, argument(node, args, 1, "mask"), UNKNOWN)
        pointer, mask = access.pointer, access.mask
        if pointer.dims is None:
            return Value(kinds=frozenset({"load"}), raw=True, kept=True, loads=frozenset({access.text}))
        axes = covered(pointer, mask) if mask is not None else NOTHING
        given = argument(node, args, 2, "other")
        other = None if isinstance(given, ast.Constant) and given.value is None else given
        filler = self.flow.value(other) if other is not None else None
        finite = filler is not None and filler.number is not None and abs(filler.number) < _HUGE
        lanes = frozenset({Undefined(node, axes)}) if axes and other is None else frozenset()
        loaded = Value(
            dims=pointer.dims, kinds=frozenset({"load"}), raw=True, kept=True, undefined=lanes,
            filled=axes if finite else NOTHING, loads=frozenset({access.text}),
        )  # fmt: skip
        return loaded if lanes else loaded.inside()  # as an index, every lane has a value that was given

    def _store(self, node: ast.Call, args: list[ast.expr]) -> Value:
        stored = argument(node, args, 1, "value")
        value = self.flow.value(stored) if stored is not None else UNKNOWN
        self._kept(node, "store", args, argument(node, args, 2, "mask"), value)
        return UNKNOWN

    def _access(self, node: ast.Call, name: str, args: list[ast.expr]) -> Value:
        position = 3 if name == "atomic_cas" else 1 if name == "atomic_load" else 2
        stored = argument(node, args, 1, "val")
        value = self.flow.value(stored) if stored is not None else UNKNOWN
        mask = None if name == "atomic_cas" else argument(node, args, position, "mask")
        access = self._kept(node, name, args, mask, value)
        return Value(dims=access.pointer.dims, kinds=frozenset({"load"}))

    def _kept(self, node: ast.Call, name: str, args: list[ast.expr], mask: ast.expr | None, value: Value) -> Access:
        pointer = argument(node, args, 0, "pointer")
        address = self.flow.value(pointer) if pointer is not None else UNKNOWN
        absent = mask is None or (isinstance(mask, ast.Constant) and mask.value is None)
        limit = None if absent or mask is None else self.flow.value(mask)
        text = self.flow.address(pointer)
        access = Access(node, name, address, limit, value, text)
        self.flow.accesses[node] = access
        return access

    # --------------------------------------------------------------------------------------- arithmetic

    def _elementwise(self, node: ast.Call, name: str, args: list[ast.expr]) -> Value:
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

    def _where(self, node: ast.Call, args: list[ast.expr]) -> Value:
        if len(args) != 3:
            self._values(node)
            return UNKNOWN
        condition, first, second = (self.flow.value(a) for a in args)
        out = combined([first, second])
        chosen = all(v.kept or not v.loads for v in (first, second))
        out = replace(out, dims=broadcast(condition.dims, first.dims, second.dims), kept=chosen)
        if condition.scalar:
            return out
        out = replace(out, filled=NOTHING, undefined=frozenset())
        return out.inside() if first.integer and second.number is not None else out

    def _reduction(self, node: ast.Call, name: str, args: list[ast.expr]) -> Value:
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

    def _dot(self, node: ast.Call, args: list[ast.expr]) -> Value:
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

    # -------------------------------------------------------------------------------- shapes and casts

    def _cast_function(self, node: ast.Call, args: list[ast.expr]) -> Value:
        value = self.flow.value(args[0]) if args else UNKNOWN
        return self._cast(node, value, argument(node, args, 1, "dtype"))

    def _cast(self, node: ast.Call, value: Value, dtype: ast.expr | None) -> Value:
        known = self.dtype(dtype)
        if known == "int64" and value.product is not None:
            self.flow.late_casts[node] = value.product
        return replace(value, dtype=known, raw=False, number=None, product=None if known == "int64" else value.product)

    def _trans(self, node: ast.Call, args: list[ast.expr]) -> Value:
        value = self.flow.value(args[0]) if args else UNKNOWN
        if value.dims is None or len(args) > 1:
            return UNKNOWN
        return replace(value, dims=value.dims[::-1])

    def _expand_dims(self, node: ast.Call, args: list[ast.expr]) -> Value:
        value = self.flow.value(args[0]) if args else UNKNOWN
        axis = self.flow.source.constants.literal(argument(node, args, 1, "axis"))
        if value.dims is None or not isinstance(axis, int):
            return UNKNOWN
        at = axis % (len(value.dims) + 1)
        return replace(value, dims=(*value.dims[:at], NOTHING, *value.dims[at:]))

    def _broadcast_to(self, node: ast.Call, args: list[ast.expr]) -> Value:
        value = self.flow.value(args[0]) if args else UNKNOWN
        shape = args[1].elts if len(args) == 2 and isinstance(args[1], (ast.Tuple, ast.List)) else args[1:]
        return value if value.dims is not None and len(shape) == len(value.dims) else replace(value, dims=None)

    def _reshape(self, node: ast.Call, args: list[ast.expr]) -> Value:
        value = self.flow.value(args[0]) if args else UNKNOWN
        return Value(dtype=value.dtype, kinds=value.kinds)

    def dtype(self, node: ast.expr | None) -> str:
        """Return "float32" for `tl.float32`, "" for what is not written out."""
        name = self.names.language(node)
        return {"int1": "bool"}.get(name, name) if name.removeprefix("u").startswith(("int", "float", "bfloat")) else ""


def covered(pointer: Value, mask: Value) -> Dim:
    """Return the axes along which `mask` may switch lanes of `pointer` off; of an unknown mask, those of a vector."""
    if pointer.dims is None:
        return NOTHING
    if mask.dims is None:
        return pointer.dims[0] if len(pointer.dims) == 1 else NOTHING
    offset = len(pointer.dims) - len(mask.dims)
    if offset < 0:
        return NOTHING
    return frozenset().union(*(pointer.dims[offset + i] for i, dim in enumerate(mask.dims) if dim))


def keyword(node: ast.Call, name: str) -> ast.expr | None:
    """Return the value of a keyword argument."""
    return next((k.value for k in node.keywords if k.arg == name), None)


def argument(node: ast.Call, args: Sequence[ast.expr], position: int, name: str) -> ast.expr | None:
    """Return an argument by position (of `args`, which for a method begins with its receiver) or by keyword."""
    return args[position] if len(args) > position else keyword(node, name)
