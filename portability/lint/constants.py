"""Numbers and strings that an expression stands for, through names that are assigned once."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from portability.lint.names import Names

Function = ast.FunctionDef | ast.AsyncFunctionDef
Assigned = dict[str, list[ast.expr]]

OPAQUE = ast.Constant(...)  # the value of a name that is unpacked, looped over or augmented


class Constants:
    """The assignments of a file, by function and for the module."""

    def __init__(self, tree: ast.Module, parents: Mapping[ast.AST, ast.AST], names: Names) -> None:
        self._parents = parents
        self._names = names
        self._module = _assignments(_module_nodes(tree))
        self._functions: dict[Function, Assigned] = {}

    def assigned(self, name: ast.Name) -> ast.expr | None:
        """Return the value of a name that is assigned just once in its function, one around it, or the module."""
        for values in self._scopes(name):
            if name.id in values:
                return values[name.id][0] if len(values[name.id]) == 1 else None
        return None

    def every_assigned(self, name: ast.Name) -> list[ast.expr]:
        """Return all values given to a name in the innermost scope that assigns it."""
        return next((values[name.id] for values in self._scopes(name) if name.id in values), [])

    def literal(self, node: ast.AST | None, depth: int = 4) -> object:
        """Return the number or string that an expression is, through `tl.constexpr(…)` and single assignments."""
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Name):
            return self.literal(self.assigned(node), depth - 1) if depth else None
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            value = self.literal(node.operand, depth)
            return -value if isinstance(value, (int, float)) else None
        if isinstance(node, ast.BinOp):
            return _folded(node.op, self.literal(node.left, depth), self.literal(node.right, depth))
        return self._called(node, depth)

    def _called(self, node: ast.AST | None, depth: int) -> object:
        """`tl.constexpr(…)` and `float("-inf")`."""
        if isinstance(node, ast.Call) and len(node.args) == 1:
            value = self.literal(node.args[0], depth)
            if self._names.language(node.func) == "constexpr":
                return value
            if isinstance(node.func, ast.Name) and node.func.id == "float":
                return _float(value)
        return None

    def _scopes(self, node: ast.AST) -> Iterator[Assigned]:
        while node in self._parents:
            node = self._parents[node]
            if isinstance(node, Function):
                if node not in self._functions:
                    self._functions[node] = _assignments(own_nodes(node))
                yield self._functions[node]
        yield self._module


def own_nodes(function: Function) -> Iterator[ast.AST]:
    """Yield the nodes of a function's body without those of functions and classes inside it."""
    stack: list[ast.AST] = list(function.body)
    while stack:
        node = stack.pop()
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            stack.extend(ast.iter_child_nodes(node))


def _module_nodes(tree: ast.Module) -> Iterator[ast.AST]:
    stack: list[ast.AST] = list(tree.body)
    while stack:
        node = stack.pop()
        yield node
        if isinstance(node, (ast.If, ast.Try, ast.With, ast.ExceptHandler)):
            stack.extend(ast.iter_child_nodes(node))


def _assignments(nodes: Iterator[ast.AST]) -> Assigned:
    found: Assigned = {}
    for node in nodes:
        for target, value in _targets(node):
            for name, part in _parts(target, value):
                found.setdefault(name, []).append(part)
    return found


def _targets(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    if isinstance(node, ast.Assign):
        yield from ((target, node.value) for target in node.targets)
    elif isinstance(node, ast.AnnAssign) and node.value is not None:
        yield node.target, node.value
    elif isinstance(node, (ast.AugAssign, ast.For, ast.comprehension)):
        yield node.target, OPAQUE


def _parts(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(target, ast.Name):
        yield target.id, value
    elif isinstance(target, (ast.Tuple, ast.List)):
        written = (
            value.elts if isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts) else None
        )
        for i, element in enumerate(target.elts):
            yield from _parts(element, written[i] if written else _item(value, i))


def _item(value: ast.expr, index: int) -> ast.expr:
    """`value[index]`, so that `M, N = x.shape` is seen as `M = x.shape[0]`."""
    if value is OPAQUE:
        return value
    return ast.copy_location(ast.Subscript(value, ast.Constant(index), ast.Load()), value)


_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], object]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.LShift: operator.lshift,
    ast.Pow: operator.pow,
}


def _folded(op: ast.operator, left: object, right: object) -> object:
    numbers = isinstance(left, (int, float)) and isinstance(right, (int, float))
    if not numbers or type(op) not in _OPERATORS:
        return None
    if isinstance(op, (ast.Pow, ast.LShift)) and not (abs(left) <= 1024 and abs(right) <= 64):  # type: ignore[arg-type]
        return None  # a number that nobody asked to be written out
    try:
        return _OPERATORS[type(op)](left, right)
    except (ArithmeticError, ValueError, TypeError):
        return None  # it has no value, at run time neither


def _float(value: object) -> object:
    try:
        return float(value) if isinstance(value, (int, float, str)) else None
    except ValueError:
        return None
