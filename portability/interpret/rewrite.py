"""Rewrites a jitted function into Python that does what the compiler would make of it.

Python and Triton read a few statements differently: a number that is assigned becomes a tensor, `and`, `or`, `not`
and chained comparisons of tensors are logical operations on their lanes, a loop's variable is a 32-bit integer. Each
such place becomes a call of a `Runtime` method. File, lines and globals stay the function's own, so that tracebacks,
breakpoints and reports show the kernel as it is written; nothing is put into the globals.
"""

# ruff: noqa: D102 - these methods have the names and meaning of ast's visitor

from __future__ import annotations

import ast
import builtins
import inspect
from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any

from triton.language.core import constexpr

RUNTIME = "__checked__"
OWN_BUILTINS = ("range", "min", "max")  # of Python, that mean something else in a kernel


class Rewriter(ast.NodeTransformer):
    """Puts the runtime's calls in place of what Python reads differently.

    `constants` are names that hold a constant's bare value here and a `tl.constexpr` in the compiler.
    """

    def __init__(self, constants: set[str]) -> None:
        self.constants = constants

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        self.generic_visit(node)
        node.value = _call("assign", node.value)
        return node

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        """`x += y` is `x = x + y`, of names and nothing else."""
        self.generic_visit(node)
        if not isinstance(node.target, ast.Name):
            return node
        total = ast.copy_location(ast.BinOp(ast.Name(node.target.id, ast.Load()), node.op, node.value), node)
        return ast.copy_location(ast.Assign([node.target], _call("assign", total)), node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        """`x: tl.constexpr = y` names a constant; any other annotation means nothing."""
        self.generic_visit(node)
        if node.value is not None:
            node.value = _call("constant" if _is_constexpr(node.annotation) else "assign", node.value)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """`BLOCK.value` is the constant itself."""
        self.generic_visit(node)
        constant = isinstance(node.value, ast.Name) and node.value.id in self.constants and node.attr == "value"
        return node.value if constant else node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        if len(node.ops) == 1:
            return node
        # a < b < c: every operand once, in a cell of its own, then the lane-wise conjunction of the pairs
        values = [node.left, *node.comparators]
        names = [f"__compared_{node.lineno}_{node.col_offset}_{i}" for i in range(len(values))]
        kept: list[ast.expr] = [ast.NamedExpr(ast.Name(n, ast.Store()), v) for n, v in zip(names, values, strict=True)]
        pairs: list[ast.expr] = [
            ast.Compare(ast.Name(names[i], ast.Load()), [op], [ast.Name(names[i + 1], ast.Load())])
            for i, op in enumerate(node.ops)
        ]
        return ast.copy_location(
            _call("chain", ast.Tuple(kept, ast.Load()), _thunk(ast.Tuple(pairs, ast.Load()))), node
        )

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        self.generic_visit(node)
        name = "both" if isinstance(node.op, ast.And) else "either"
        result = node.values[0]
        for value in node.values[1:]:
            result = _call(name, result, _thunk(value))
        return ast.copy_location(result, node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        return ast.copy_location(_call("no", node.operand), node) if isinstance(node.op, ast.Not) else node

    def visit_If(self, node: ast.If) -> ast.AST:
        self.generic_visit(node)
        node.test = _call("condition", node.test)
        return node

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        self.generic_visit(node)
        node.test = _call("condition", node.test)
        return node

    def visit_While(self, node: ast.While) -> ast.AST:
        """`while test: body` asks before every turn whether the loop can still end, and closes the watch after it."""
        self.generic_visit(node)
        node.test = _call("condition", node.test)
        watch = f"__watch_{node.lineno}_{node.col_offset}"
        turn = ast.Expr(ast.Call(ast.Attribute(ast.Name(watch, ast.Load()), "turn", ast.Load()), [], []))
        head = ast.copy_location(turn, node)
        head.end_lineno = node.lineno  # else the call's line is the loop's last one
        node.body.insert(0, head)
        item = ast.withitem(_call("watch"), ast.Name(watch, ast.Store()))
        return ast.copy_location(ast.With([item], [node]), node)


def _call(method: str, *args: ast.expr) -> ast.Call:
    function = ast.Attribute(ast.Name(RUNTIME, ast.Load()), method, ast.Load())
    call = ast.Call(function, list(args), [])
    return ast.copy_location(call, args[0]) if args else call


def _thunk(value: ast.expr) -> ast.Lambda:
    none = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
    return ast.copy_location(ast.Lambda(none, value), value)


def rewrite(jit: Any, runtime: Any, substitute: Callable[[Any], Any]) -> Callable[..., Any]:
    """Return the Python function for a JITFunction.

    `substitute(value)` gives what stands for a global in the function, or the value itself: builtins of the language
    that were imported by name are bound to the front end there, and constants are taken out of their `tl.constexpr`.
    """
    function = jit.fn
    cells = {RUNTIME: runtime, **_substituted(function, substitute, runtime)}
    made: dict[str, Any] = {}
    exec(_compiled(jit, tuple(cells)), function.__globals__, made)
    rewritten = made["__factory__"](**cells)
    rewritten.__defaults__, rewritten.__kwdefaults__ = function.__defaults__, function.__kwdefaults__
    return rewritten  # type: ignore[no-any-return]


_codes: dict[tuple[int, str, tuple[str, ...]], tuple[Any, CodeType]] = {}  # kept alive with its function, by id


def _compiled(jit: Any, cells: tuple[str, ...]) -> CodeType:
    """Return the code of a factory that takes `cells` and returns the rewritten function; the same for all sessions."""
    key = (id(jit), jit.src, cells)
    if key in _codes:
        return _codes[key][1]
    function = jit.fn
    tree = ast.parse(jit.src)
    ast.increment_lineno(tree, definition_line(jit) - 1)
    definition = tree.body[0]
    assert isinstance(definition, ast.FunctionDef)
    constants = {name for name, value in function.__globals__.items() if isinstance(value, constexpr)}
    definition = Rewriter(constants | _constants(definition)).visit(definition)
    _bare(definition)
    module = ast.parse(f"def __factory__({', '.join(cells)}): return {definition.name}")
    factory = module.body[0]
    assert isinstance(factory, ast.FunctionDef)
    factory.body.insert(0, definition)
    ast.fix_missing_locations(module)
    code = compile(module, function.__code__.co_filename, "exec")
    _codes[key] = jit, code
    return code


def definition_line(jit: Any) -> int:
    """Return the line of a JITFunction's `def`, below its decorators."""
    above = next(i for i, line in enumerate(jit.raw_src) if line.lstrip().startswith("def "))
    return int(jit.starting_line_number) + above


def _bare(definition: ast.FunctionDef) -> None:
    """Take off what was evaluated when the function was defined: decorators, annotations, and default values."""
    definition.decorator_list, definition.returns = [], None
    arguments = definition.args
    for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
        argument.annotation = None
    # The number of defaults must stay; their values are put back afterwards.
    arguments.defaults = [ast.Constant(None) for _ in arguments.defaults]
    arguments.kw_defaults = [d and ast.Constant(None) for d in arguments.kw_defaults]


def _constants(definition: ast.FunctionDef) -> set[str]:
    """Return the names that the function declares constants, as parameters or within."""
    arguments = definition.args
    every = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
    names = {a.arg for a in every if a.annotation is not None and _is_constexpr(a.annotation)}
    for node in ast.walk(definition):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and _is_constexpr(node.annotation):
            names.add(node.target.id)
    return names


def _is_constexpr(annotation: ast.expr) -> bool:
    return "constexpr" in ast.unparse(annotation)


def _substituted(function: Callable[..., Any], substitute: Callable[[Any], Any], runtime: Any) -> dict[str, Any]:
    """Return what the function's names stand for where it is not what Python would find: its closure, too."""
    names = set(_names(function.__code__))
    found = {name: substitute(value) for name, value in inspect.getclosurevars(function).nonlocals.items()}
    for name in names & set(function.__globals__):
        value = function.__globals__[name]
        replacement = substitute(value)
        if replacement is not value:
            found[name] = replacement
    for name in OWN_BUILTINS:
        if name in names and function.__globals__.get(name, getattr(builtins, name)) is getattr(builtins, name):
            found[name] = getattr(runtime, name)
    return found


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)
