"""Which names of the language a kernel uses, read from its source and from the helpers that it calls.

    uses(source, "flash_attention_kernel").names    # ("tensor.to", "tl.dot", "tl.exp2", "tl.load", …)

The names are written as the API probes write them: `tl.dot`, `libdevice.cbrt`, `tensor.to`, `tensor_descriptor.load`,
`tl.extra.cuda.smid`. Neither torch nor triton is imported, and nothing is executed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from portability.lint.names import known
from portability.lint.source import Source

# Methods that tensors and descriptors both have; a descriptor's take offsets as a list or tuple.
_SHARED = {"store", "gather", "atomic_add", "atomic_and", "atomic_max", "atomic_min", "atomic_or", "atomic_xor"}

_OPERATORS: dict[type[ast.AST], str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "truediv", ast.FloorDiv: "floordiv", ast.Mod: "mod",
    ast.BitAnd: "and", ast.BitOr: "or", ast.BitXor: "xor", ast.LShift: "lshift", ast.RShift: "rshift",
    ast.USub: "neg", ast.Invert: "invert", ast.Not: "not",
    ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge", ast.Eq: "eq", ast.NotEq: "ne",
}  # fmt: skip


@dataclass(frozen=True)
class Uses:
    """What a kernel uses, each sorted."""

    names: tuple[str, ...]  # functions, dtypes and classes of the language, methods, libdevice
    operators: tuple[str, ...]  # "tensor.__add__": on constants too, since they cannot be told apart everywhere
    helpers: tuple[str, ...]  # functions that were followed, "module.function" for those of other files
    unresolved: tuple[str, ...]  # functions of other files whose source was not given


def uses(source: str | ast.Module, kernel: str = "", modules: Mapping[str, str] | None = None) -> Uses:
    """Return what a kernel of `source` uses, or all its kernels where none is named.

    source    a Python file's text or tree
    kernel    the name of a function in it
    modules   dotted module -> text, for helpers that are imported from them
    Raises `LookupError` naming the choices where the file has no such kernel, `SyntaxError` where it is no Python.
    """
    text = source if isinstance(source, str) else ast.unparse(source)
    walk = _Walk(Source(text), modules or {})
    names = [k.name for k in walk.source.kernels]
    if kernel and kernel not in names:
        raise LookupError(f"no kernel {kernel!r}; there are {', '.join(names) or 'none'}")
    for name in [kernel] if kernel else names:
        walk.function(walk.source, "", name)
    started = {kernel} if kernel else set(names)
    return Uses(*(tuple(sorted(found)) for found in (walk.names, walk.operators, walk.seen - started, walk.unresolved)))


class _Walk:
    """Collects from functions, each once."""

    def __init__(self, source: Source, modules: Mapping[str, str]) -> None:
        self.source = source
        self.names: set[str] = set()
        self.operators: set[str] = set()
        self.seen: set[str] = set()
        self.unresolved: set[str] = set()
        self._modules = modules
        self._sources: dict[str, Source] = {}

    def function(self, source: Source, module: str, name: str) -> None:
        """Collect from a function of a file and from what it calls."""
        qualified = f"{module}.{name}" if module else name
        kernel = source.kernel(name)
        if qualified in self.seen or kernel is None:
            return
        self.seen.add(qualified)
        for node in source.nodes_of(kernel):
            if node in kernel.node.decorator_list:
                continue
            self._node(source, module, node)

    def _node(self, source: Source, module: str, node: ast.AST) -> None:
        self.operators |= {f"tensor.__{name}__" for name in _operators(node)}
        if isinstance(node, (ast.Name, ast.Attribute)):
            if isinstance(node, ast.Name) and source.kernel(node.id) is not None:
                self.function(source, module, node.id)
            elif not isinstance(source.parents.get(node), ast.Attribute):  # the whole of a dotted name
                self._path(source, node)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and not source.names.resolve(node.func):
            self.names |= set(_method(node, node.func))
        if isinstance(node, ast.Attribute) and node.attr == "T" and not source.names.resolve(node):
            self.names.add("tensor.T")

    def _path(self, source: Source, node: ast.Name | ast.Attribute) -> None:
        path = _longest(source, node)
        if path.startswith("triton.language.") and path.count(".") > 1:
            self.names |= {f"libdevice.{n}" for n in [source.names.libdevice(node)] if n} or {_spelled(path)}
        elif path in ("triton.cdiv", "triton.next_power_of_2"):
            self.names.add(path)
        elif isinstance(source.parents.get(node), ast.Call) and path and not path.startswith("triton"):
            self._imported(path)

    def _imported(self, path: str) -> None:
        module, _, name = path.rpartition(".")
        if module in self._modules:
            if module not in self._sources:
                self._sources[module] = Source(self._modules[module])
            self.function(self._sources[module], module, name)
        elif module and module != "torch" and not module.startswith("torch."):
            self.unresolved.add(path)


def _longest(source: Source, node: ast.Name | ast.Attribute) -> str:
    """The dotted path into the language that a node begins with: of `tl.float32.primitive_bitwidth`, `tl.float32`."""
    inner: ast.expr = node
    while isinstance(inner, ast.Attribute):
        path = source.names.resolve(inner)
        if not path or path in known().names or not _is_name(source.names.resolve(inner.value)):
            return path
        inner = inner.value
    return source.names.resolve(inner)


def _is_name(path: str) -> bool:
    """Whether a path is a name of the language and no module, so that what follows is one of its attributes."""
    modules = ("triton.language.math", "triton.language.extra", "triton.language.target_info", "triton.language.core")
    return path in known().names and path.startswith("triton.language.") and path not in modules


def _spelled(path: str) -> str:
    return "tl" + path.removeprefix("triton.language")


def _operators(node: ast.AST) -> Iterator[str]:
    if isinstance(node, (ast.BinOp, ast.UnaryOp, ast.AugAssign)):
        yield from (_OPERATORS[type(node.op)] for _ in [0] if type(node.op) in _OPERATORS)
    elif isinstance(node, ast.Compare):
        yield from (_OPERATORS[type(op)] for op in node.ops if type(op) in _OPERATORS)
    elif isinstance(node, ast.Subscript) and any(isinstance(n, ast.Slice) for n in ast.walk(node.slice)):
        yield "getitem"


def _method(call: ast.Call, function: ast.Attribute) -> Iterator[str]:
    name = function.attr
    listed = bool(call.args) and isinstance(call.args[0], (ast.List, ast.Tuple))
    if name in known().descriptor_methods and (name not in known().methods or (name in _SHARED and listed)):
        yield f"tensor_descriptor.{name}"
    elif name in known().methods:
        yield f"tensor.{name}"
