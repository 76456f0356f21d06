"""One Python file as the rules see it: its kernels, their parameters, branches, constants and suppressions."""

from __future__ import annotations

import ast
import io
import re
import tokenize
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePath
from typing import TYPE_CHECKING

from portability.lint.names import Names

if TYPE_CHECKING:
    from portability.lint.flow import Flow
    from portability.lint.launches import Launches

Function = ast.FunctionDef | ast.AsyncFunctionDef

# Words of a test that tells vendors, architectures or devices apart, and of a folder that holds one vendor's code.
_VENDOR = re.compile(
    r"hip|rocm|amd|cuda|nvidia|npu|ascend|xpu|intel|musa|mlu|gcu|mps|cdna|rdna|gfx\d|hopper|blackwell|ampere|turing"
    r"|pdl|tma|ptx|mfma|wmma|wgmma|vendor|backend|platform|device_type|capability|\bsm_?\d|\barch\b|is_available",
    re.IGNORECASE,
)
# A folder, file or function that is named after a vendor holds that vendor's code: word -> its targets, where we have them.
_VENDORS = {
    **dict.fromkeys(("nvidia", "cuda", "nv"), "cuda"),
    **dict.fromkeys(("amd", "rocm", "hip"), "hip"),
    **dict.fromkeys(("ascend", "npu"), "npu"),
    **dict.fromkeys(
        ("hygon", "xpu", "intel", "cambricon", "mlu", "musa", "mthreads", "metax", "kunlunxin", "iluvatar", "enflame", "gcu",
         "aipu", "arm", "sunrise", "tsingmicro"), "other",
    ),
}  # fmt: skip
_NOQA = re.compile(r"#\s*noqa(?::\s*(?P<codes>[A-Z]+\d+(?:[\s,]+[A-Z]+\d+)*))?", re.IGNORECASE)
_IGNORE_FILE = re.compile(r"#\s*portability:\s*ignore-file(?:\[(?P<codes>[^\]]*)\])?", re.IGNORECASE)


@dataclass(frozen=True)
class Parameter:
    """A parameter of a kernel."""

    name: str
    constant: bool  # tl.constexpr
    annotation: str  # as written
    default: ast.expr | None


@dataclass(frozen=True, eq=False)
class Kernel:
    """A function of the language: a kernel that is launched, or a helper that kernels call."""

    node: ast.FunctionDef
    parameters: tuple[Parameter, ...]
    helper: bool  # it returns a value or is called by another: its parameters may be blocks

    @property
    def name(self) -> str:
        return self.node.name

    def parameter(self, name: str) -> Parameter | None:
        """Return the parameter of that name."""
        return next((p for p in self.parameters if p.name == name), None)


class Source:
    """A parsed file. Raises `SyntaxError` (or `ValueError` for a NUL byte) where it is no Python."""

    def __init__(self, text: str, path: str = "<string>", folders: Sequence[str] = ()) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes in other people's strings are not our subject
            self.tree = ast.parse(text)
        self.text = text
        self.path = path
        self.vendor = next((v for f in (*folders, PurePath(path).stem) if (v := vendor_in(f))), "")
        self.names = Names(self.tree)
        self.nodes = list(ast.walk(self.tree))
        self.parents = {child: node for node in self.nodes for child in ast.iter_child_nodes(node)}
        self._flows: dict[Kernel, Flow] = {}
        self._nodes: dict[Kernel, list[ast.AST]] = {}

    # ------------------------------------------------------------------------------------------ kernels

    @cached_property
    def kernels(self) -> tuple[Kernel, ...]:
        """Every function of the language, in the order of the file."""
        found = [n for n in self.nodes if isinstance(n, ast.FunctionDef) and self._is_kernel(n)]
        names = {n.name for n in found}
        called = {
            c.func.id
            for f in found
            for c in ast.walk(f)
            if isinstance(c, ast.Call) and isinstance(c.func, ast.Name) and c.func.id in names
        }
        return tuple(Kernel(n, self._parameters(n), n.name in called or _returns_value(n)) for n in found)

    @cached_property
    def _by_node(self) -> dict[ast.AST, Kernel]:
        return {k.node: k for k in self.kernels}

    def kernel(self, name: str) -> Kernel | None:
        """Return the last kernel of that name."""
        return next((k for k in reversed(self.kernels) if k.name == name), None)

    def kernel_of(self, node: ast.AST) -> Kernel | None:
        """Return the innermost kernel around `node`."""
        return next((self._by_node[a] for a in self.ancestors(node) if a in self._by_node), None)

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

    def _is_kernel(self, node: ast.FunctionDef) -> bool:
        for decorator in node.decorator_list:
            called = decorator.func if isinstance(decorator, ast.Call) else decorator
            path = self.names.resolve(called)
            if path == "triton.jit":
                return True
            if path.startswith("triton.experimental."):
                return False  # Gluon is another language
        # `kernel = triton.jit(kernel)`, or a decorator that wraps triton.jit: the body tells.
        arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        if any(self._is_constexpr(a.annotation) for a in arguments):
            return not any(self.names.resolve(d).startswith("triton.constexpr_function") for d in node.decorator_list)
        body = [c for c in _own_nodes(node) if isinstance(c, ast.Call)]
        return any(self.names.language(c.func) in ("program_id", "load", "store", "arange") for c in body)

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
            Parameter(a.arg, self._is_constexpr(a.annotation), ast.unparse(a.annotation) if a.annotation else "", d)
            for a, d in pairs
        )

    # ----------------------------------------------------------------------------------------- branches

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        """Yield what encloses `node`, innermost first."""
        while node in self.parents:
            node = self.parents[node]
            yield node

    def function_of(self, node: ast.AST) -> Function | None:
        """Return the innermost function around `node`."""
        return next((a for a in self.ancestors(node) if isinstance(a, Function)), None)

    def in_vendor_branch(self, node: ast.AST) -> bool:
        """Return whether the place is reached only after a test that tells vendors or devices apart.

        A test around it, one before it that returns or raises, and a function that is named after a vendor count.
        """
        child = node
        for ancestor in self.ancestors(node):
            if isinstance(ancestor, (ast.If, ast.IfExp, ast.While)) and child is not ancestor.test:
                if self._tells_vendors(ancestor.test):
                    return True
            elif isinstance(ancestor, Function) and vendor_in(ancestor.name):
                return True
            elif isinstance(ancestor, ast.BoolOp):
                earlier = ancestor.values[: ancestor.values.index(child)] if isinstance(child, ast.expr) else []
                if any(self._tells_vendors(v) for v in earlier):
                    return True
            if isinstance(child, ast.stmt) and any(self._leaves_for_vendor(s) for s in _before(ancestor, child)):
                return True
            child = ancestor
        return False

    def is_guarded(self, node: ast.AST) -> bool:
        """Return whether a failure there is handled, or the place is reached only under a test of version or name."""
        child = node
        for ancestor in self.ancestors(node):
            if isinstance(ancestor, ast.Try) and (child in ancestor.body or isinstance(child, ast.ExceptHandler)):
                return True
            if isinstance(ancestor, ast.ExceptHandler):
                return True
            if isinstance(ancestor, (ast.If, ast.IfExp)) and child is not ancestor.test and self._asks_version(ancestor.test):
                return True
            child = ancestor
        return False

    def in_main(self, node: ast.AST) -> bool:
        """Return whether the place is in `if __name__ == "__main__":`, which is nobody's library."""
        return any(isinstance(a, ast.If) and "__name__" in ast.unparse(a.test) for a in self.ancestors(node))

    def _tells_vendors(self, test: ast.AST) -> bool:
        return any(_VENDOR.search(word) for word in self._words(test))

    def _asks_version(self, test: ast.AST) -> bool:
        return any(re.search(r"version|hasattr|\bhas_|above_\d|support|triton_\d", w, re.IGNORECASE) for w in self._words(test))

    def _words(self, test: ast.AST) -> Iterator[str]:
        """Names, attributes and strings of a test; a local name that is assigned once stands for its value too."""
        for node in ast.walk(test):
            if isinstance(node, ast.Name):
                yield node.id
                value = self.assigned(node)
                if value is not None:
                    yield from (w for n in ast.walk(value) for w in _word(n))
            else:
                yield from _word(node)

    def _leaves_for_vendor(self, statement: ast.stmt) -> bool:
        """`if not is_hip(): return …`, `assert device.type == "npu"`."""
        if isinstance(statement, ast.If) and self._tells_vendors(statement.test):
            return isinstance(statement.body[-1], (ast.Return, ast.Raise, ast.Continue))
        return False

    # ---------------------------------------------------------------------------------------- constants

    def assigned(self, name: ast.Name) -> ast.expr | None:
        """Return the value of a name that is assigned just once in its function, or in the module."""
        function = self.function_of(name)
        while function is not None:
            values = self._assignments(function).get(name.id, [])
            if values:
                return values[0] if len(values) == 1 else None
            function = self.function_of(function)
        values = self._module_assignments.get(name.id, [])
        return values[0] if len(values) == 1 else None

    def every_assigned(self, name: ast.Name) -> list[ast.expr]:
        """Return all values given to a name in its function, else in the module."""
        function = self.function_of(name)
        values = self._assignments(function).get(name.id, []) if function is not None else []
        return values or self._module_assignments.get(name.id, [])

    def literal(self, node: ast.expr | None, depth: int = 4) -> object:
        """Return the number or string that an expression is, through `tl.constexpr(…)` and single assignments."""
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            value = self.literal(node.operand, depth)
            return -value if isinstance(value, (int, float)) else None
        if isinstance(node, ast.BinOp):
            return _fold(node.op, self.literal(node.left, depth), self.literal(node.right, depth))
        if isinstance(node, ast.Call) and len(node.args) == 1:
            if self.names.language(node.func) == "constexpr":
                return self.literal(node.args[0], depth)
            if isinstance(node.func, ast.Name) and node.func.id == "float":
                return _float(self.literal(node.args[0], depth))
        if isinstance(node, ast.Name) and depth:
            return self.literal(self.assigned(node), depth - 1)
        return None

    @cached_property
    def _module_assignments(self) -> dict[str, list[ast.expr]]:
        return _assignments(self.tree)

    def _assignments(self, function: Function) -> dict[str, list[ast.expr]]:
        cache: dict[Function, dict[str, list[ast.expr]]] = self.__dict__.setdefault("_assigned", {})
        if function not in cache:
            cache[function] = _assignments(function)
        return cache[function]

    # -------------------------------------------------------------------------------------- suppression

    @cached_property
    def _comments(self) -> dict[int, str]:
        try:
            tokens = list(tokenize.generate_tokens(io.StringIO(self.text).readline))
        except (tokenize.TokenError, IndentationError):
            return {}
        return {t.start[0]: t.string for t in tokens if t.type == tokenize.COMMENT}

    @cached_property
    def _ignored(self) -> list[str]:
        """Codes that the whole file ignores; "" is all."""
        matches = [m for c in self._comments.values() if (m := _IGNORE_FILE.search(c))]
        return [code.strip().upper() for m in matches for code in (m["codes"] or "").split(",")]

    def is_suppressed(self, code: str, node: ast.AST) -> bool:
        """Return whether a comment on the first or last line of the place, or of its statement, or on the file says so."""
        if any(code.startswith(c) for c in self._ignored):
            return True
        statement = next((n for n in (node, *self.ancestors(node)) if isinstance(n, ast.stmt)), node)
        lines = {getattr(node, "lineno", 1), getattr(node, "end_lineno", 1)}
        if not isinstance(statement, (ast.FunctionDef, ast.ClassDef, ast.If, ast.For, ast.While, ast.With, ast.Try)):
            lines |= {getattr(statement, "lineno", 1), getattr(statement, "end_lineno", 1)}
        for line in lines:
            match = _NOQA.search(self._comments.get(line, ""))
            if match and (match["codes"] is None or code in re.split(r"[\s,]+", match["codes"].upper())):
                return True
        return False


def vendor_in(name: str) -> str:
    """Return "cuda", "hip", "npu" or "other" where a word of a name is a vendor's (`_ascend`, `softplus_nv`), else ""."""
    words = re.split(r"[_.\d]+", name.lower())
    return next((_VENDORS[w] for w in words if w in _VENDORS), "")


def _returns_value(function: ast.FunctionDef) -> bool:
    return any(isinstance(n, ast.Return) and n.value is not None for n in _own_nodes(function))


def _own_nodes(function: Function) -> Iterator[ast.AST]:
    """Yield the nodes of a function's body without those of functions and classes inside it."""
    stack: list[ast.AST] = list(function.body)
    while stack:
        node = stack.pop()
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            stack.extend(ast.iter_child_nodes(node))


def _word(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Name):
        yield node.id
    elif isinstance(node, ast.Attribute):
        yield node.attr
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value


def _before(block: ast.AST, statement: ast.stmt) -> list[ast.stmt]:
    """The statements before `statement` in the list of `block` that holds it."""
    for field in ("body", "orelse", "finalbody"):
        statements = getattr(block, field, None)
        if isinstance(statements, list) and statement in statements:
            return statements[: statements.index(statement)]
    return []


def _assignments(scope: ast.AST) -> dict[str, list[ast.expr]]:
    """name -> values assigned to it in `scope`; a name that is unpacked, looped over or augmented has an opaque one."""
    found: dict[str, list[ast.expr]] = {}
    opaque = ast.Constant(...)
    nodes = _own_nodes(scope) if isinstance(scope, Function) else _module_nodes(scope)
    for node in nodes:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                for name, value in _pairs(target, node.value):
                    found.setdefault(name, []).append(value)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
            found.setdefault(node.target.id, []).append(node.value)
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            found.setdefault(node.target.id, []).append(opaque)
        elif isinstance(node, (ast.For, ast.comprehension)):
            for name, _ in _pairs(node.target, opaque):
                found.setdefault(name, []).append(opaque)
    return found


def _module_nodes(tree: ast.AST) -> Iterator[ast.AST]:
    stack: list[ast.AST] = list(getattr(tree, "body", []))
    while stack:
        node = stack.pop()
        yield node
        if isinstance(node, (ast.If, ast.Try, ast.With, ast.ExceptHandler)):
            stack.extend(ast.iter_child_nodes(node))


def _pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(target, ast.Name):
        yield target.id, value
    elif isinstance(target, (ast.Tuple, ast.List)):
        known = isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts)
        for i, element in enumerate(target.elts):
            part = value.elts[i] if known and isinstance(value, (ast.Tuple, ast.List)) else _item(value, i)
            yield from _pairs(element, part)


def _item(value: ast.expr, index: int) -> ast.expr:
    """`value[index]`, so that `M, N = x.shape` is seen as `M = x.shape[0]`."""
    if isinstance(value, ast.Constant):
        return value
    return ast.copy_location(ast.Subscript(value, ast.Constant(index), ast.Load()), value)


def _fold(op: ast.operator, left: object, right: object) -> object:
    if not isinstance(left, (int, float)) or not isinstance(right, (int, float)):
        return None
    try:
        if isinstance(op, ast.Mult):
            return left * right
        if isinstance(op, ast.Add):
            return left + right
        if isinstance(op, ast.Sub):
            return left - right
        if isinstance(op, ast.FloorDiv):
            return left // right
        if isinstance(op, ast.LShift) and isinstance(left, int) and isinstance(right, int) and 0 <= right < 64:
            return left << right
        if isinstance(op, ast.Pow) and abs(left) <= 1024 and abs(right) <= 64:
            power: object = left**right
            return power
    except (ArithmeticError, ValueError):
        return None
    return None


def _float(value: object) -> object:
    try:
        return float(value) if isinstance(value, (int, float, str)) else None
    except ValueError:
        return None
