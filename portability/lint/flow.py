"""Follows the values of one kernel, statement by statement, and keeps what the rules ask about.

Not an interpreter of the language: what is not certain is unknown, and a rule says nothing of an unknown value.
Both branches of an `if` are taken and joined, the body of a loop is taken twice, and a call of a helper gives an
unknown value.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from portability.lint.calls import Calls
from portability.lint.indices import (
    INDICES,
    counts_tiles,
    is_fixed,
    is_rounded_down,
    is_run_time,
    of_constant,
    of_parameter,
    with_moved_axes,
)
from portability.lint.values import (
    NOTHING,
    UNKNOWN,
    Access,
    Axis,
    Dot,
    Reduction,
    Value,
    combined,
    filled_after_sum,
    join,
)

if TYPE_CHECKING:
    from portability.lint.source import Kernel, Source


_CEILINGS = {"cdiv", "min", "max"}
_BLOCK = re.compile(r"(?i:\w*(block|tile)\w*)|B[A-Z]{0,2}\d?")


class Flow:
    """The accesses, reductions and products of a kernel, each by its place, in the order of the kernel."""

    def __init__(self, source: Source, kernel: Kernel) -> None:
        self.source = source
        self.kernel = kernel
        self.accesses: dict[ast.Call, Access] = {}
        self.reductions: dict[ast.Call, Reduction] = {}
        self.dots: dict[ast.Call, Dot] = {}
        self.arguments: dict[ast.Call, tuple[Value, ...]] = {}  # of every call of the language
        self._bounded: dict[Axis, set[str]] = {}  # axes that are compared with a length -> its name, or ""
        self.block_products: set[ast.BinOp] = set()  # products of a stride with a block of indices
        self.late_casts: dict[ast.Call, ast.BinOp] = {}  # a cast to 64 bits of a product that was made in 32
        self._env: dict[str, Value] = {p.name: of_parameter(p, kernel.helper) for p in kernel.parameters}
        self._loops = 0  # around the statement at hand
        self._written: dict[str, str] = {}  # name -> the expression that it was last assigned
        self._calls = Calls(self)
        self._handlers: dict[type[ast.expr], Callable[[Any], Value]] = {
            ast.Constant: lambda n: of_constant(n.value),
            ast.Name: self._name,
            ast.BinOp: lambda n: self._binary(n, self.value(n.left), self.value(n.right)),
            ast.UnaryOp: self._unary,
            ast.BoolOp: lambda n: combined([self.value(v) for v in n.values], dtype="bool"),
            ast.Compare: self._compare,
            ast.IfExp: self._choice,
            ast.Subscript: self._index,
            ast.Attribute: self._attribute,
            ast.Call: self._calls.value,
            ast.Tuple: self._elements,
            ast.List: self._elements,
        }
        self._block(kernel.node.body)

    # ---------------------------------------------------------------------------------------- statements

    def _block(self, statements: list[ast.stmt]) -> None:
        for statement in statements:
            self._statement(statement)

    def _statement(self, node: ast.stmt) -> None:
        if isinstance(node, ast.Assign):
            value = self.value(node.value)
            for target in node.targets:
                self._assign(target, node.value, value)
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            self._assign(node.target, node.value, self.value(node.value))
        elif isinstance(node, ast.AugAssign):
            operands = self.value(node.target), self.value(node.value)
            as_binary = ast.copy_location(ast.BinOp(node.target, node.op, node.value), node)
            before = self.address(node.target)
            self._assign(node.target, node.value, self._advanced(node, self._binary(as_binary, *operands)))
            self._written[ast.unparse(node.target)] = f"{before} + {ast.unparse(node.value)}"
        elif isinstance(node, (ast.Expr, ast.Return)) and node.value is not None:
            self.value(node.value)
        elif isinstance(node, ast.If):
            self.value(node.test)
            self._branches(node.body, node.orelse)
        elif isinstance(node, ast.For):
            self._for(node)
        elif isinstance(node, ast.While):
            for _ in range(2):
                self.value(node.test)
                self._branches(node.body, [])
        elif isinstance(node, ast.With):
            self._block(node.body)
        elif isinstance(node, ast.Assert):
            self.value(node.test)

    def _branches(self, first: list[ast.stmt], second: list[ast.stmt]) -> None:
        before = dict(self._env)
        self._block(first)
        after_first, self._env = self._env, before
        self._block(second)
        for name, value in after_first.items():
            self._env[name] = join(value, self._env[name]) if name in self._env else value

    def _for(self, node: ast.For) -> None:
        arguments = [self.value(a) for a in node.iter.args] if isinstance(node.iter, ast.Call) else []
        start = arguments[0].kinds if len(arguments) > 1 else frozenset()
        kinds = frozenset({"loop"}) | (start & {"program", "load"})  # its end says how long, not what it is
        wide = any(a.dtype == "int64" for a in arguments)
        full = isinstance(node.iter, ast.Call) and self._full_tiles(node.iter)
        steps = (
            frozenset({ast.unparse(node.iter.args[2])})
            if arguments[2:] and isinstance(node.iter, ast.Call)
            else frozenset()
        )
        kinds |= {"full"} if full else frozenset()
        index = Value(dims=(), dtype="int64" if wide else "int32", kinds=kinds, steps=steps)
        self._loops += 1
        for _ in range(2):
            if isinstance(node.target, ast.Name):
                self._env[node.target.id] = index
            self._branches(node.body, [])
        self._loops -= 1
        self._block(node.orelse)

    def _full_tiles(self, call: ast.Call) -> bool:
        """Return whether all tiles of a loop are full: its end is rounded down (`range(0, n // B * B, B)`), or it runs
        a constant number of times.
        """
        stop = call.args[0] if len(call.args) == 1 else call.args[1] if call.args else None
        parameter = self.kernel.parameter(stop.id) if isinstance(stop, ast.Name) else None
        if len(call.args) < 3 and (isinstance(stop, ast.Constant) or (parameter is not None and parameter.constant)):
            return True
        if isinstance(stop, ast.Name) and parameter is None and self.value(stop).constant:
            return True  # computed from constants, as tiles are
        if isinstance(stop, ast.Name):
            stop = self.source.constants.assigned(stop) or stop
        return stop is not None and is_rounded_down(stop, _CEILINGS)

    def _assign(self, target: ast.expr, expression: ast.expr, value: Value) -> None:
        if isinstance(target, ast.Name):
            self._env[target.id] = value
            self._written[target.id] = ast.unparse(expression)
        elif isinstance(target, (ast.Tuple, ast.List)):
            parts = expression.elts if isinstance(expression, ast.Tuple) else []
            for i, element in enumerate(target.elts):
                # tl.max(return_indices=True) and the like give blocks of one shape; of a helper nothing is known
                self._assign(element, expression, self.value(parts[i]) if len(parts) == len(target.elts) else value)

    # --------------------------------------------------------------------------------------- expressions

    def value(self, node: ast.expr) -> Value:
        """Return what is known of an expression at this point of the kernel, and keep the accesses in it."""
        handler = self._handlers.get(type(node))
        return handler(node) if handler is not None else UNKNOWN

    def _name(self, node: ast.Name) -> Value:
        return self._env[node.id] if node.id in self._env else self._global(node)

    def _choice(self, node: ast.IfExp) -> Value:
        self.value(node.test)
        return join(self.value(node.body), self.value(node.orelse))

    def _attribute(self, node: ast.Attribute) -> Value:
        value = self.value(node.value) if isinstance(node.value, (ast.Name, ast.Call)) else UNKNOWN
        return value.mapped(dims=value.dims[::-1]) if node.attr == "T" and value.dims else UNKNOWN

    def _elements(self, node: ast.Tuple | ast.List) -> Value:
        for element in node.elts:
            self.value(element)  # for the accesses in it
        return UNKNOWN

    def _global(self, node: ast.Name) -> Value:
        number = self.source.constants.literal(node)
        if isinstance(number, (int, float)) and not isinstance(number, bool):
            return replace(of_constant(number), kinds=frozenset({"constant"}))
        return UNKNOWN

    def _unary(self, node: ast.UnaryOp) -> Value:
        value = self.value(node.operand)
        if isinstance(node.op, ast.USub) and value.number is not None:
            return replace(value, number=-value.number)
        return value.mapped(**({"dtype": "bool"} if isinstance(node.op, ast.Not) else {}))

    def _binary(self, node: ast.BinOp, left: Value, right: Value) -> Value:
        out = combined([left, right])
        if left.number is not None and right.number is not None:
            folded = self.source.constants.literal(node)
            return replace(
                out, number=folded if isinstance(folded, (int, float)) else None, kinds=left.kinds | right.kinds
            )
        op = node.op
        if isinstance(op, (ast.Add, ast.Sub)):
            out = replace(
                out, base=left.base or right.base, product=left.product or right.product, steps=left.steps | right.steps
            )
            out = with_moved_axes(node, out, left, right)
            out = replace(out, filled=filled_after_sum(left, right))
        elif isinstance(op, ast.Mult):
            out = self._multiplied(node, out, left, right)
        elif isinstance(op, (ast.Mod, ast.FloorDiv)):
            if isinstance(op, ast.Mod):  # no index any more: it wraps around inside its bound
                within = {"within"} if "program" in out.kinds else set()
                out = replace(out.inside(), kinds=out.kinds - {"program"} | within)
        elif isinstance(op, ast.Div):
            out = replace(
                out, dtype="float32" if "float" not in out.dtype and left.integer and right.integer else out.dtype
            )
        elif isinstance(op, ast.MatMult):
            return UNKNOWN
        return out

    def _multiplied(self, node: ast.BinOp, out: Value, left: Value, right: Value) -> Value:
        out = replace(out, product=left.product or right.product)
        if "bool" in (left.dtype, right.dtype):
            out = replace(out, filled=NOTHING, undefined=frozenset())
        for index, stride, place, factor in (
            (left, right, node.left, node.right),
            (right, left, node.right, node.left),
        ):
            if index.scalar and index.kinds & INDICES and counts_tiles(place):
                stepped = out.kinds if is_fixed(stride) else out.kinds | {"stride"}
                out = replace(out, steps=out.steps | {ast.unparse(factor)}, kinds=stepped)
        for index, stride in ((left, right), (right, left)):
            if "program" in index.kinds and index.dtype == "int32" and is_run_time(stride) and out.dtype != "int64":
                if index.axes:
                    self.block_products.add(node)
                return replace(out, product=out.product or node)
        return out

    def _advanced(self, node: ast.AugAssign, value: Value) -> Value:
        """`pointers += BLOCK_K * stride` in a loop: the axis of BLOCK_K is one of tiles."""
        names = {n.id for n in ast.walk(node.value) if isinstance(n, ast.Name)}
        if value.dims is None or not value.base or not self._loops:
            return value
        dims = tuple(frozenset(replace(a, tiled=a.tiled or a.size in names) for a in d) for d in value.dims)
        return replace(value, dims=dims)

    def _compare(self, node: ast.Compare) -> Value:
        written = [node.left, *node.comparators]
        values = [self.value(v) for v in written]
        for i, op in enumerate(node.ops):
            upper = i + isinstance(op, (ast.Lt, ast.LtE))
            if isinstance(op, (ast.Lt, ast.LtE, ast.Gt, ast.GtE)):
                self._bound(values[2 * i + 1 - upper], values[upper], written[upper])
        return combined(values, dtype="bool", filled=NOTHING)

    def _bound(self, block: Value, length: Value, written: ast.expr) -> None:
        """Keep that the axes of a block are compared with a length, unless it is the size of the block itself."""
        positions = block.axes and "load" not in block.kinds
        if not (positions and length.scalar and length.kinds & {"parameter", "constant"}):
            return
        name = written.id if isinstance(written, ast.Name) else ""
        for axis in block.axes:
            if f"name:{axis.size}" not in length.kinds:
                self._bounded.setdefault(axis, set()).add(name)

    @property
    def lengths(self) -> set[str]:
        """Names of what axes are compared with."""
        return set().union(*self._bounded.values()) - {""}

    def _index(self, node: ast.Subscript) -> Value:
        value = self.value(node.value)
        if value.dims is None:
            return UNKNOWN
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        dims, rest = [], list(value.dims)
        for part in parts:
            if isinstance(part, ast.Constant) and part.value is None:
                dims.append(NOTHING)
            elif isinstance(part, ast.Slice) and rest:
                dims.append(rest.pop(0))
            else:
                return UNKNOWN
        return replace(value, dims=(*dims, *rest))

    def address(self, node: ast.expr | None) -> str:
        """Return an address as written, a name standing for what it was last assigned."""
        text = ast.unparse(node) if node is not None else ""
        return self._written.get(text, text)

    def ends_inside(self, axis: Axis) -> bool:
        """Return whether an axis may end inside a block: it is compared with a length somewhere, or comes in tiles of a
        size that is named as a block. Tiles of other sizes (heads) are mostly exact.
        """
        if axis.safe:
            return False
        pointers = {a.pointer.base for a in self.accesses.values()} - {""}  # where it may be one, a name tells nothing
        bounded = [b for b, names in self._bounded.items() if not names <= pointers]
        again = axis.inline and not axis.moved and any((b.size, b.moved) == (axis.size, "") for b in bounded)
        if axis in bounded or again:
            return True
        return axis.tiled and _BLOCK.fullmatch(axis.size) is not None

    def __repr__(self) -> str:
        return f"Flow({self.kernel.name}: {len(self.accesses)} accesses)"
