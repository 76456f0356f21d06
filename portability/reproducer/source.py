"""A kernel's text with all that it uses, out of whatever modules that lies in, as one piece of Python.

Helpers, constants and classes are followed by the names that the text reads; what Triton, torch and Python's own
library hold is imported. Two things of one name in different modules are told apart by a number.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import sys
import textwrap
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any

from portability.reproducer.literals import UnwritableError, plain

THEIRS = {"triton", "torch", "numpy", *sys.stdlib_module_names}
JIT_OPTIONS = ("do_not_specialize", "do_not_specialize_on_alignment", "noinline", "debug")


class Sources:
    """Collects definitions, what is used before what uses it."""

    def __init__(self) -> None:
        import torch
        import triton

        self.imports: dict[str, str] = {"torch": "import torch", "triton": "import triton"}
        self.definitions: dict[str, str] = {}
        self._names: dict[tuple[int, str], str] = {(id(torch), ""): "torch", (id(triton), ""): "triton"}
        self._taken = {"torch", "triton", "main", "run", "inputs"}
        self._held: list[Any] = []  # keeps what was named alive, and so its id its own

    def text(self) -> str:
        """Return the definitions."""
        constants = [t for t in self.definitions.values() if not t.startswith(("@", "def ", "class "))]
        functions = [t for t in self.definitions.values() if t.startswith(("@", "def ", "class "))]
        return "\n".join(constants) + ("\n\n\n" if constants else "") + "\n\n\n".join(t.rstrip() for t in functions)

    def import_text(self) -> str:
        """Return the import statements."""
        return "\n".join(sorted(set(self.imports.values()), key=lambda s: (not s.startswith("import"), s)))

    def name_of(self, value: Any, wanted: str = "") -> str:
        """Return the name under which the text knows `value`, which is defined or imported if need be.

        Raises `UnwritableError` naming what has no text.
        """
        value = _jitted(value)
        key = (id(value), wanted if _is_constant(value) else "")
        if key in self._names:
            return self._names[key]
        if _is_constant(value):
            return self._constant(value, wanted)
        own = getattr(getattr(value, "fn", value), "__name__", "") or wanted
        module = getattr(getattr(value, "fn", value), "__module__", "") or ""
        if isinstance(value, ModuleType) and _is_theirs(value.__name__):
            statement = f"import {value.__name__}" + (f" as {wanted}" if wanted != value.__name__ else "")
            return self._import(value, wanted or value.__name__, statement)
        if module and _is_theirs(module) and own.isidentifier():
            name = self._free(wanted or own)
            return self._import(value, name, f"from {module} import {own}{f' as {name}' if name != own else ''}")
        return self._define(value, own)

    def expression(self, value: Any) -> str:
        """Return a constant of a kernel as Python: numbers, dtypes of the language, functions, and tuples of these."""
        import triton.language as tl

        if isinstance(value, tl.constexpr):
            return f"{self._language()}.constexpr({self.expression(value.value)})"
        if isinstance(value, tl.dtype):
            return f"{self._language()}.{_dtype_name(value)}"
        if callable(value) and not isinstance(value, type):
            return self.name_of(value)
        if isinstance(value, (tuple, list)) and not hasattr(value, "_fields"):
            inner = ", ".join(self.expression(v) for v in value)
            return f"[{inner}]" if isinstance(value, list) else f"({inner}{',' if len(value) == 1 else ''})"
        return plain(value)

    # ---------------------------------------------------------------------------------------------- definitions

    def _language(self) -> str:
        import triton.language as tl

        return self.name_of(tl, "tl")

    def _constant(self, value: Any, wanted: str) -> str:
        name = self._names[id(value), wanted] = self._free(wanted)
        self._held.append(value)
        self.definitions[name] = f"{name} = {self.expression(value)}"
        return name

    def _define(self, value: Any, own: str) -> str:
        name = self._names[id(value), ""] = self._free(own)
        self._held.append(value)
        function = getattr(value, "fn", value)
        try:
            text = textwrap.dedent(inspect.getsource(function))
        except (OSError, TypeError):
            raise UnwritableError(f"{own or value!r} has no source text") from None
        text = self._rewritten(text, function, name, jitted=_is_jitted(value))
        head = self._decorator(value) if _is_jitted(value) else ""
        self.definitions[name] = head + text
        return name

    def _decorator(self, value: Any) -> str:
        given = {o: v for o in JIT_OPTIONS if (v := getattr(value, o, None))}
        called = f"({', '.join(f'{k}={plain(v)}' for k, v in given.items())})" if given else ""
        return f"@triton.jit{called}\n"

    def _rewritten(self, text: str, function: Any, name: str, jitted: bool) -> str:
        """Return the definition with the names of this text in it, and a kernel without its decorators."""
        tree = ast.parse(text)
        node = tree.body[0]
        assert isinstance(node, (ast.FunctionDef, ast.ClassDef))
        lines = [line.encode() for line in text.splitlines(keepends=True)]
        edits = list(self._edits(node, _scope(function), jitted))
        if node.name != name:
            edits.append(_rename(node, lines, name))
        for (line, start), (end_line, end), new in sorted(edits, reverse=True):
            assert line == end_line, "a name stands on one line"
            lines[line - 1] = lines[line - 1][:start] + new.encode() + lines[line - 1][end:]
        first = (
            node.lineno - 1
            if jitted
            else (min(d.lineno for d in node.decorator_list) - 1 if node.decorator_list else 0)
        )
        return b"".join(lines[first:]).decode()

    def _edits(
        self, node: ast.FunctionDef | ast.ClassDef, scope: Mapping[str, Any], jitted: bool
    ) -> Iterator[tuple[tuple[int, int], tuple[int, int], str]]:
        """Yield what to write in the place of each name that means something outside of the function."""
        local = _locals(node)
        skipped = {id(n) for d in node.decorator_list for n in ast.walk(d)} if jitted else set()
        parents = {id(child): parent for parent in ast.walk(node) for child in ast.iter_child_nodes(parent)}
        for found in ast.walk(node):
            if not isinstance(found, ast.Name) or id(found) in skipped or not isinstance(found.ctx, ast.Load):
                continue
            if found.id in local or found.id not in scope:
                continue
            whole, value, written = _followed(found, scope[found.id], parents)
            new = self.name_of(value, found.id if whole is found else written)
            if ast.unparse(whole) != new:
                assert whole.end_lineno is not None
                assert whole.end_col_offset is not None
                yield (whole.lineno, whole.col_offset), (whole.end_lineno, whole.end_col_offset), new

    def _import(self, value: Any, name: str, statement: str) -> str:
        free = self._names[id(value), ""] = self._free(name)
        self._held.append(value)
        self.imports[free] = statement if free == name else f"{statement.partition(' as ')[0]} as {free}"
        return free

    def _free(self, name: str) -> str:
        name = name if name.isidentifier() else "value"
        number, free = 2, name
        while free in self._taken:
            number, free = number + 1, f"{name}_{number}"
        self._taken.add(free)
        return free


def _is_constant(value: Any) -> bool:
    """Whether a value is one that its text makes again: no module, function or class."""
    import triton.language as tl

    return isinstance(value, (tl.constexpr, tl.dtype)) or not (
        callable(value) or isinstance(value, (type, ModuleType)) or hasattr(value, "fn")
    )


def _jitted(value: Any) -> Any:
    """Return the jitted function in what autotuning and heuristics wrap around it."""
    while hasattr(value, "fn") and hasattr(value.fn, "fn"):
        value = value.fn
    return value


def _is_jitted(value: Any) -> bool:
    return hasattr(value, "fn") and hasattr(value, "arg_names")


def _is_theirs(module: str) -> bool:
    return module.partition(".")[0] in THEIRS


def _scope(function: Any) -> dict[str, Any]:
    """Return what the names of a function or class mean where it was written; Python's own are left to Python."""
    if inspect.isclass(function):
        return dict(vars(sys.modules[function.__module__]))
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    inner = {name: cell.cell_contents for name, cell in cells}
    scope = {**function.__globals__, **inner}
    return {k: v for k, v in scope.items() if not (hasattr(builtins, k) and getattr(builtins, k) is v)}


def _locals(node: ast.AST) -> set[str]:
    names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
    return names | {a.arg for a in ast.walk(node) if isinstance(a, ast.arg)}


def _followed(name: ast.Name, value: Any, parents: Mapping[int, ast.AST]) -> tuple[ast.expr, Any, str]:
    """Return a name with the attributes that lead out of modules which are nobody's but the project's."""
    whole: ast.expr = name
    written = name.id
    while isinstance(value, ModuleType) and not _is_theirs(value.__name__):
        parent = parents.get(id(whole))
        if not isinstance(parent, ast.Attribute):
            raise UnwritableError(f"module {value.__name__} is used as a value")
        whole, value, written = parent, getattr(value, parent.attr), parent.attr
    return whole, value, written


def _rename(
    node: ast.FunctionDef | ast.ClassDef, lines: list[bytes], name: str
) -> tuple[tuple[int, int], tuple[int, int], str]:
    at = lines[node.lineno - 1].index(node.name.encode(), node.col_offset)
    return (node.lineno, at), (node.lineno, at + len(node.name.encode())), name


def _dtype_name(value: Any) -> str:
    import triton.language as tl

    found: str = next(n for n in vars(tl) if isinstance(getattr(tl, n), tl.dtype) and getattr(tl, n) == value)
    return found
