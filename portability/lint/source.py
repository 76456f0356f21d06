"""One Python file as the rules see it: its kernels, their parameters, constants, branches and suppressions."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from portability.lint.branches import vendor_of_file
from portability.lint.constants import Constants, Function, own_nodes
from portability.lint.names import Names
from portability.lint.suppression import Suppressions

if TYPE_CHECKING:
    from portability.lint.flow import Flow
    from portability.lint.launches import Launches


@dataclass(frozen=True)
class Parameter:
    """A parameter of a kernel."""

    name: str
    constant: bool  # tl.constexpr
    annotation: str  # as written
    default: ast.expr | None
    node: ast.arg


@dataclass(frozen=True, eq=False)
class Kernel:
    """A function of the language: a kernel that is launched, or a helper that kernels call."""

    node: ast.FunctionDef
    parameters: tuple[Parameter, ...]
    helper: bool  # it returns a value or is called by another: its parameters may be blocks

    @property
    def name(self) -> str:
        """The function's own name."""
        return self.node.name

    def parameter(self, name: str) -> Parameter | None:
        """Return the parameter of that name."""
        return next((p for p in self.parameters if p.name == name), None)


class Source:
    """A parsed file. Raises `SyntaxError` (or `ValueError` for a NUL byte) where it is no Python.

    `folders` are those of the path that say something about the project: a vendor's name, not a home directory.
    """

    def __init__(self, text: str, path: str = "<string>", folders: Sequence[str] = ()) -> None:
        self.tree = parsed(text)
        self.path = path
        self.vendor = vendor_of_file(path, tuple(folders))  # the backend whose code this is, "" for everyone's
        self.names = Names(self.tree)
        self.nodes = list(ast.walk(self.tree))
        self.parents = {child: node for node in self.nodes for child in ast.iter_child_nodes(node)}
        self.constants = Constants(self.tree, self.parents, self.names)
        self.suppressions = Suppressions(text)
        self._flows: dict[Kernel, Flow] = {}
        self._nodes: dict[Kernel, list[ast.AST]] = {}

    @cached_property
    def kernels(self) -> tuple[Kernel, ...]:
        """Every function of the language, in the order of the file."""
        found = [n for n in self.nodes if isinstance(n, ast.FunctionDef) and self._is_kernel(n)]
        names = {n.name for n in found}
        calls = [c for f in found for c in ast.walk(f) if isinstance(c, ast.Call) and isinstance(c.func, ast.Name)]
        called = {c.func.id for c in calls if isinstance(c.func, ast.Name)} & names
        return tuple(Kernel(n, self._parameters(n), n.name in called or _returns_value(n)) for n in found)

    def kernel(self, name: str) -> Kernel | None:
        """Return the last kernel of that name."""
        return next((k for k in reversed(self.kernels) if k.name == name), None)

    def kernel_of(self, node: ast.AST) -> Kernel | None:
        """Return the innermost kernel around `node`."""
        return next((self._by_node[a] for a in self.ancestors(node) if a in self._by_node), None)

    def reachable(self, kernel: Kernel) -> list[Kernel]:
        """Return a kernel and the functions of this file that it calls, directly or not."""
        found, left = [kernel], [kernel]
        while left:
            calls = (n for n in self.nodes_of(left.pop()) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name))
            for call in calls:
                callee = self.kernel(call.func.id) if isinstance(call.func, ast.Name) else None
                if callee is not None and callee not in found:
                    found.append(callee)
                    left.append(callee)
        return found

    def nodes_of(self, kernel: Kernel) -> list[ast.AST]:
        """Return every node of a kernel's definition."""
        if kernel not in self._nodes:
            self._nodes[kernel] = list(ast.walk(kernel.node))
        return self._nodes[kernel]

    def flow(self, kernel: Kernel) -> Flow:
        """Return what is known of the values in `kernel`, computed once."""
        from portability.lint.flow import Flow

        if kernel not in self._flows:
            self._flows[kernel] = Flow(self, kernel)
        return self._flows[kernel]

    @cached_property
    def launches(self) -> Launches:
        """Launches and autotuning in this file."""
        from portability.lint.launches import Launches

        return Launches(self)

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        """Yield what encloses `node`, innermost first."""
        while node in self.parents:
            node = self.parents[node]
            yield node

    def statement(self, node: ast.AST) -> ast.AST:
        """Return the innermost statement that holds `node`."""
        return next((n for n in (node, *self.ancestors(node)) if isinstance(n, ast.stmt)), node)

    def function_of(self, node: ast.AST) -> Function | None:
        """Return the innermost function around `node`."""
        return next((a for a in self.ancestors(node) if isinstance(a, Function)), None)

    @cached_property
    def _by_node(self) -> dict[ast.AST, Kernel]:
        return {k.node: k for k in self.kernels}

    def _is_kernel(self, node: ast.FunctionDef) -> bool:
        for decorator in node.decorator_list:
            path = self.names.resolve(decorator.func if isinstance(decorator, ast.Call) else decorator)
            if path == "triton.jit":
                return True
            if path.startswith("triton.experimental.") or path == "triton.constexpr_function":
                return False  # Gluon is another language, and a constexpr function is Python
        # `kernel = triton.jit(kernel)`, or a decorator that wraps triton.jit: the function itself tells.
        if any(
            self._is_constexpr(a.annotation) for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
        ):
            return True
        calls = (c for c in own_nodes(node) if isinstance(c, ast.Call))
        return any(self.names.language(c.func) in ("program_id", "load", "store", "arange") for c in calls)

    def _is_constexpr(self, annotation: ast.expr | None) -> bool:
        if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
            return annotation.value.split(".")[-1] == "constexpr"
        return self.names.language(annotation) == "constexpr"

    def _parameters(self, node: ast.FunctionDef) -> tuple[Parameter, ...]:
        arguments = [*node.args.posonlyargs, *node.args.args]
        defaults: list[ast.expr | None] = [None] * (len(arguments) - len(node.args.defaults))
        defaults += node.args.defaults
        pairs = [*zip(arguments, defaults, strict=True), *zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)]
        return tuple(
            Parameter(a.arg, self._is_constexpr(a.annotation), ast.unparse(a.annotation) if a.annotation else "", d, a)
            for a, d in pairs
        )


def parsed(text: str) -> ast.Module:
    """Return the tree of a file. Raises `SyntaxError`, or `ValueError` for a NUL byte."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # invalid escapes in other people's strings are not our subject
        return ast.parse(text)


def _returns_value(function: ast.FunctionDef) -> bool:
    return any(isinstance(n, ast.Return) and n.value is not None for n in own_nodes(function))
