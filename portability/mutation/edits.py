"""Mistakes that people make in kernels, as edits of a syntax tree: one mutant for each place where one can be made."""

from __future__ import annotations

import ast
import copy
import hashlib
import itertools
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

WHOLE = "the whole body"
MASKED = ("load", "store")
EXPONENTIALS = ("exp", "exp2")
FLIPPED: dict[type[ast.cmpop], type[ast.cmpop]] = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt}
HELPERS = """

def _mutant_zeros(made):
    import torch
    if isinstance(made, torch.Tensor):
        return torch.zeros_like(made)
    return type(made)(map(_mutant_zeros, made)) if isinstance(made, (tuple, list)) else made


def _mutant_reference(operator, given):
    import torch
    from portability.kernel import registered
    case = next(c for c in registered.values() if getattr(c.operator, "__name__", "") == operator)
    wide = [x.double() if isinstance(x, torch.Tensor) and x.is_floating_point() else x for x in given]
    return case.reference(*wide)
"""


@dataclass(frozen=True)
class Edit:
    """One node, and what takes its place: a node, or statements."""

    kind: str
    node: ast.AST
    new: Any
    function: ast.FunctionDef  # that it is in
    before: str  # code, for people and for `equivalent_mutants.toml`
    after: str


@dataclass(frozen=True)
class Mutant:
    """A file with one mistake."""

    file: Path
    function: str
    kind: str
    line: int
    before: str
    after: str
    nth: int  # of those with one function, kind and code before
    source: str

    @cached_property
    def digest(self) -> str:
        """Name the mutant by its code: the changed function and the kernels of its file that it calls or that call it.

        Whatever else is in the file may change, other kernels too, and a verdict stands.
        """
        code = _connected(ast.parse(self.source), self.function)
        return hashlib.sha256("\n".join([self.file.name, self.function, *code]).encode()).hexdigest()[:24]

    @property
    def name(self) -> str:
        """Say which in one line."""
        return shown(self.file.name, self.line, self.function, self.kind, self.before, self.after)


def shown(file: str, line: int, function: str, kind: str, before: str, after: str) -> str:
    """Say in one line which mutant it is."""
    before, after = (textwrap.shorten(t, 100, placeholder=" …") for t in (before, after))
    return f"{file}:{line} {function}: {kind}: {before} -> {after}"


def mutants_of(path: Path, functions: Sequence[str], operators: Sequence[str] = ()) -> list[Mutant]:
    """Return every mutant of the jitted `functions` of a file, and of the `operators` that call them."""
    tree = ast.parse(path.read_text())
    for i, node in enumerate(ast.walk(tree)):
        node._at = i  # type: ignore[attr-defined]  # a copy of the tree keeps it
    found: list[Mutant] = []
    for function in (n for n in tree.body if isinstance(n, ast.FunctionDef)):
        jitted = function.name in functions and is_jitted(function)
        makers = IN_KERNELS if jitted else IN_OPERATORS if function.name in operators else ()
        for make in makers:
            for edit in make(function):
                found.append(_mutant(path, tree, edit, found))
    return found


def _connected(tree: ast.Module, function: str) -> list[str]:
    """Return the code of a function and, if it is jitted, of all that is joined to it by calls, either way."""
    functions = {n.name: n for n in tree.body if isinstance(n, ast.FunctionDef)}
    jitted = {name: node for name, node in functions.items() if is_jitted(node)}
    named = {name: {n.id for n in ast.walk(node) if isinstance(n, ast.Name)} for name, node in jitted.items()}
    found, waiting = set[str](), [function]
    while waiting:
        here = waiting.pop()
        if here in found:
            continue
        found.add(here)
        waiting += [name for name in jitted if here in jitted and (name in named[here] or here in named[name])]
    return [ast.unparse(node) for name, node in functions.items() if name in found]


def reached(path: Path, function: str) -> str:
    """Return the file's source with a `function` that fails when it is run or compiled: whoever passes runs it not."""
    tree = ast.parse(path.read_text())
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == function:
            node.body[:0] = ast.parse("_mutant_reached").body
    return ast.unparse(tree) + HELPERS


def is_jitted(function: ast.FunctionDef) -> bool:
    """Whether a function is decorated with `triton.jit`, alone or under `triton.autotune` and `triton.heuristics`."""
    return any(ast.unparse(d).startswith("triton.jit") for d in function.decorator_list)


def _mutant(path: Path, tree: ast.Module, edit: Edit, known: Sequence[Mutant]) -> Mutant:
    changed = _Replace(edit).visit(copy.deepcopy(tree))
    source = ast.unparse(ast.fix_missing_locations(changed)) + HELPERS
    name = edit.function.name
    same = [m for m in known if (m.function, m.kind, m.before) == (name, edit.kind, edit.before)]
    line = getattr(edit.node, "lineno", edit.function.lineno)
    return Mutant(path, name, edit.kind, line, edit.before, edit.after, len(same), source)


class _Replace(ast.NodeTransformer):
    def __init__(self, edit: Edit) -> None:
        self.at = edit.node._at  # type: ignore[attr-defined]
        self.new = edit.new

    def visit(self, node: ast.AST) -> Any:
        """Replace the one node."""
        if getattr(node, "_at", None) == self.at:
            return copy.deepcopy(self.new)
        return self.generic_visit(node)


def _edit(kind: str, function: ast.FunctionDef, node: ast.AST, new: Any, after: str = "") -> Edit:
    made = after or "; ".join(_shown(n) for n in (new if isinstance(new, list) else [new]))
    return Edit(kind, node, new, function, _shown(node), made)


def _shown(node: ast.AST) -> str:
    return " ".join(ast.unparse(node).split())


def _nodes(function: ast.FunctionDef) -> Iterator[ast.AST]:
    """Every node of a function's body."""
    for statement in function.body:
        yield from ast.walk(statement)


def _is_call(node: ast.AST, *names: str) -> bool:
    """Whether a node is `tl.NAME(...)`."""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "tl"
        and node.func.attr in names
    )


# ------------------------------------------------------------------------------------------------- in kernels


def mask_dropped(function: ast.FunctionDef) -> Iterator[Edit]:
    """A load, store or atomic without its mask; a mask that has lost one of two conditions."""
    for node in _nodes(function):
        if _is_call(node, *MASKED, "atomic_add", "atomic_max") and isinstance(node, ast.Call):
            if any(k.arg == "mask" for k in node.keywords):
                kept = [k for k in node.keywords if k.arg not in ("mask", "other")]
                new = ast.Call(node.func, node.args, kept)
                yield _edit("mask-dropped", function, node, new)
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd) and _is_condition(node):
            for side in (node.left, node.right):
                yield _edit("mask-dropped", function, node, side)
        elif isinstance(node, ast.AugAssign) and isinstance(node.op, ast.BitAnd):
            yield _edit("mask-dropped", function, node, ast.Pass(), "nothing")


def _is_condition(node: ast.AST) -> bool:
    """Whether a conjunction is of comparisons, and not of bits."""
    return any(
        isinstance(n, (ast.Compare, ast.Name)) and not isinstance(n, ast.Constant) for n in ast.walk(node)
    ) and not any(isinstance(n, ast.Constant) and isinstance(n.value, int) and n.value > 2 for n in ast.walk(node))


def other_changed(function: ast.FunctionDef) -> Iterator[Edit]:
    """Another value for lanes that are masked off, or that a `where` fills."""
    for node in _nodes(function):
        if _is_call(node, "load") and isinstance(node, ast.Call):
            for keyword in node.keywords:
                if keyword.arg == "other":
                    yield _edit("other-changed", function, keyword.value, _other_than(keyword.value))
        elif _is_call(node, "where") and isinstance(node, ast.Call) and len(node.args) == 3:
            filler = node.args[2]
            if isinstance(filler, ast.Constant) or _shown(filler) == "float('-inf')":
                yield _edit("other-changed", function, filler, _other_than(filler))


def _other_than(value: ast.expr) -> ast.expr:
    known = value.value if isinstance(value, ast.Constant) else None
    if isinstance(known, float) and known == 0:
        return ast.parse("float('inf')", mode="eval").body  # 1.0 would be hidden by a product's other operand, a 0
    return ast.Constant(1 if known == 0 else 0.0)


def off_by_one(function: ast.FunctionDef) -> Iterator[Edit]:
    """A comparison that takes or leaves the limit itself; a loop that ends a step early."""
    for node in _nodes(function):
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in FLIPPED:
            yield _edit(
                "off-by-one", function, node, ast.Compare(node.left, [FLIPPED[type(node.ops[0])]()], node.comparators)
            )
        elif isinstance(node, ast.For) and isinstance(node.iter, ast.Call) and _shown(node.iter.func) in RANGES:
            first, stop, step = _bounds(node.iter)
            call = ast.Call(node.iter.func, [first, ast.BinOp(stop, ast.Sub(), step), step], node.iter.keywords)
            yield _edit("off-by-one", function, node.iter, call)


RANGES = ("range", "tl.range", "tl.static_range")


def _bounds(call: ast.Call) -> tuple[ast.expr, ast.expr, ast.expr]:
    first, stop, step = [*call.args, None, None][:3]
    assert first is not None
    if stop is None:
        return ast.Constant(0), first, ast.Constant(1)
    return first, stop, step or ast.Constant(1)


def maximum_kept(function: ast.FunctionDef) -> Iterator[Edit]:
    """An exponential of what the maximum was to be subtracted from."""
    for node in _nodes(function):
        if _is_call(node, *EXPONENTIALS) and isinstance(node, ast.Call):
            (argument,) = node.args
            if isinstance(argument, ast.BinOp) and isinstance(argument.op, ast.Sub):
                yield _edit("maximum-kept", function, argument, argument.left)


def half_accumulator(function: ast.FunctionDef) -> Iterator[Edit]:
    """float16 where float32 was meant: in a sum that is begun, or in a value that is widened."""
    for node in _nodes(function):
        if isinstance(node, ast.Attribute) and _shown(node) == "tl.float32":
            yield _edit("half-accumulator", function, node, ast.parse("tl.float16", mode="eval").body)


def strides_swapped(function: ast.FunctionDef) -> Iterator[Edit]:
    """Two strides of one tensor that have changed places in the signature."""
    names = [a.arg for a in function.args.args]
    for i, (one, two) in enumerate(itertools.pairwise(names)):
        if one.startswith("stride") and two.startswith("stride") and one[:-1] == two[:-1]:
            arguments = copy.deepcopy(function.args)
            arguments.args[i], arguments.args[i + 1] = arguments.args[i + 1], arguments.args[i]
            yield Edit("strides-swapped", function.args, arguments, function, f"{one}, {two}", f"{two}, {one}")


def factor_dropped(function: ast.FunctionDef) -> Iterator[Edit]:
    """A scale that is not applied, an epsilon that is not added."""
    for node in _nodes(function):
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mult, ast.Add)):
            wanted = "scale" if isinstance(node.op, ast.Mult) else "eps"
            for factor, rest in ((node.left, node.right), (node.right, node.left)):
                if isinstance(factor, ast.Name) and wanted in factor.id:
                    yield _edit("factor-dropped", function, node, rest)


def store_skipped(function: ast.FunctionDef) -> Iterator[Edit]:
    """One program of the grid, the last, that does not store."""
    for node in _nodes(function):
        if isinstance(node, ast.Expr) and _is_call(node.value, "store", "atomic_add", "atomic_max"):
            test = ast.parse("tl.program_id(0) != tl.num_programs(0) - 1", mode="eval").body
            yield _edit("store-skipped", function, node, ast.If(test, [node], []), "not stored by the last program")


def race_introduced(function: ast.FunctionDef) -> Iterator[Edit]:
    """An atomic that is none; programs that scribble over what the next one will store."""
    for node in _nodes(function):
        if isinstance(node, ast.Expr) and _is_call(node.value, "atomic_add") and isinstance(node.value, ast.Call):
            yield _edit("race-introduced", function, node, _plain_addition(node.value))
    text = _shown(function)
    returns = any(isinstance(n, ast.Return) for n in _nodes(function))
    if "tl.program_id(0)" in text and "tl.store(" in text and not returns:
        after = "scribbles over the next program's output"
        yield Edit("race-introduced", function, _scribbling(function), function, WHOLE, after)


def _plain_addition(call: ast.Call) -> ast.Expr:
    pointer, value = call.args[:2]
    masks = [k for k in call.keywords if k.arg == "mask"]
    tl = ast.Name("tl", ast.Load())
    load = ast.Call(ast.Attribute(tl, "load", ast.Load()), [pointer], masks)
    store = ast.Call(ast.Attribute(tl, "store", ast.Load()), [pointer, ast.BinOp(load, ast.Add(), value)], masks)
    return ast.Expr(store)


def _scribbling(function: ast.FunctionDef) -> ast.FunctionDef:
    """The function with, before its body, the same body as the next program, which stores ones."""
    changed = copy.deepcopy(function)
    is_text = isinstance(changed.body[0], ast.Expr) and isinstance(changed.body[0].value, ast.Constant)
    body = changed.body[1:] if is_text else changed.body
    assigned = {n.id for s in body for n in ast.walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    parameters = [a.arg for a in function.args.args if a.arg in assigned]
    start = [ast.parse(f"{p}_next = {p}").body[0] for p in parameters]
    copied = [_AsTheNext(assigned).visit(copy.deepcopy(s)) for s in body]
    test = ast.parse("tl.program_id(0) + 1 < tl.num_programs(0)", mode="eval").body
    changed.body = [ast.If(test, [*start, *copied], []), *body]
    return changed


class _AsTheNext(ast.NodeTransformer):
    """The next program's number, names of its own, and ones in the place of what is stored."""

    def __init__(self, assigned: set[str]) -> None:
        self.assigned = assigned

    def visit_Name(self, node: ast.Name) -> ast.Name:
        """Rename what the body assigns."""
        return ast.Name(f"{node.id}_next", node.ctx) if node.id in self.assigned else node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """Count programs from one; store ones."""
        shown = _shown(node)
        node = self.generic_visit(node)  # type: ignore[assignment]
        if shown == "tl.program_id(0)":
            return ast.BinOp(node, ast.Add(), ast.Constant(1))
        if _is_call(node, "store"):
            node.args[1] = ast.BinOp(ast.BinOp(node.args[1], ast.Mult(), ast.Constant(0)), ast.Add(), ast.Constant(1))
        return node


# ------------------------------------------------------------------------------------------------ in operators


def zeros_returned(function: ast.FunctionDef) -> Iterator[Edit]:
    """An operator that returns zeros in the place of what it computed."""
    returns = [n for n in _nodes(function) if isinstance(n, ast.Return) and n.value is not None]
    for node in returns[-1:]:
        assert node.value is not None
        call = ast.Call(ast.Name("_mutant_zeros", ast.Load()), [node.value], [])
        yield _edit("zeros-returned", function, node.value, call, "zeros")


def reference_returned(function: ast.FunctionDef) -> Iterator[Edit]:
    """An operator that returns its reference, and launches nothing."""
    given = ", ".join(a.arg for a in function.args.args if a.arg != "blocks")
    body = ast.parse(f"return _mutant_reference({function.name!r}, [{given}])").body
    changed = copy.deepcopy(function)
    changed.body = list(body)
    yield Edit("reference-returned", function, changed, function, WHOLE, "its reference, with no launch")


Maker = Callable[[ast.FunctionDef], Iterator[Edit]]
IN_KERNELS: Sequence[Maker] = (
    mask_dropped, other_changed, off_by_one, maximum_kept, half_accumulator, strides_swapped, factor_dropped,
    store_skipped, race_introduced,
)  # fmt: skip
IN_OPERATORS: Sequence[Maker] = (zeros_returned, reference_returned)
