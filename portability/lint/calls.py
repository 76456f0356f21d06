"""What a call in a kernel gives: functions of the language, methods of a tensor, libdevice."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from portability.lint.arguments import argument, keyword
from portability.lint.operations import ELEMENTWISE, REDUCTIONS, Operations
from portability.lint.values import (
    NOTHING,
    UNKNOWN,
    ZEROS,
    Access,
    Axis,
    Dim,
    Undefined,
    Value,
    combined,
)

if TYPE_CHECKING:
    from portability.lint.flow import Flow

_METHODS = frozenset({"reshape", "view", "ravel", "trans", "permute", "expand_dims", "broadcast_to", "cast"})
_HUGE = 1000.0  # the exponential of a filler beyond it is 0, or infinite
_HINTS = frozenset({"multiple_of", "max_contiguous", "max_constancy", "debug_barrier"})


class Calls:
    """Evaluates the calls of one kernel's flow."""

    def __init__(self, flow: Flow) -> None:
        self.flow = flow
        self.names = flow.source.names
        self.operations = Operations(flow)
        more = self.operations
        self._handlers: dict[str, Callable[[ast.Call, list[ast.expr]], Value]] = {
            "program_id": self._program_id, "num_programs": self._num_programs, "arange": self._arange,
            "zeros": self._zeros, "full": self._full, "zeros_like": self._zeros_like, "load": self._load,
            "store": self._store, "where": more.where, "dot": more.dot, "cast": more.cast_function,
            "trans": more.trans, "permute": more.trans, "expand_dims": more.expand_dims,
            "broadcast_to": more.broadcast_to, "reshape": more.reshape, "view": more.reshape, "ravel": more.reshape,
        }  # fmt: skip

    def value(self, node: ast.Call) -> Value:
        """Return what is known of a call's result, and keep accesses, reductions and products."""
        name = self.names.language(node.func)
        if name:
            return self._function(node, name, list(node.args))
        if self.names.libdevice(node.func) or self.names.resolve(node.func).split(".")[-1:] == ["libdevice"]:
            return combined(self.operations.values(node), dtype="float32")
        if isinstance(node.func, ast.Name):
            return self._builtin(node, node.func.id)
        if isinstance(node.func, ast.Attribute) and not self.names.resolve(node.func):
            return self._method(node, node.func)
        self.operations.values(node)
        return UNKNOWN

    def _builtin(self, node: ast.Call, name: str) -> Value:
        values = self.operations.values(node)
        if name in ("min", "max", "abs") and values:
            return combined(values)
        if name == "float":
            number = self.flow.source.constants.literal(node)
            return Value(dims=(), number=number if isinstance(number, float) else None, dtype="float32")
        return UNKNOWN

    def _method(self, node: ast.Call, function: ast.Attribute) -> Value:
        receiver = self.flow.value(function.value)
        if function.attr == "to":
            return self.operations.cast(node, receiver, node.args[0] if node.args else keyword(node, "dtype"))
        if receiver.dims is None:
            self.operations.values(node)
            return UNKNOWN
        if function.attr in REDUCTIONS | ELEMENTWISE or function.attr in _METHODS:
            return self._function(node, function.attr, [function.value, *node.args])
        self.operations.values(node)
        return UNKNOWN

    def _function(self, node: ast.Call, name: str, args: list[ast.expr]) -> Value:
        if name in REDUCTIONS:
            return self.operations.reduction(node, name, args)
        if name.startswith("atomic_"):
            return self._access(node, name, args)
        if name in ELEMENTWISE:
            return self.operations.elementwise(node, name, args)
        if name in self._handlers:
            return self._handlers[name](node, args)
        values = self.operations.values(node)
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
        return Value(dims=dims if known else None, dtype=self.operations.dtype(dtype))

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
