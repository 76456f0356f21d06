"""Launches and autotuning in a file: which argument goes to which parameter, grids, configurations, sizes of data."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from portability.lint.arguments import keyword
from portability.lint.constants import OPAQUE

if TYPE_CHECKING:
    from portability.lint.source import Kernel, Source

# Dimensions that a model fixes: they neither vary from call to call nor reach the limits of a grid.
_FIXED = re.compile(
    r"_?(num_?|n_)?(kv_?|q_?|v_?)?(heads?|groups?|experts?|chunks?|blocks?|splits?|stages?)(_\w+)?|[HGVD]\w?|N[A-Z]+",
    re.I,
)
# Lengths that differ from call to call, by the names that wrappers and kernels give them.
_TOKENS = (
    r"n_?elements?|num_elements|numel|n_?tokens?|num_tokens?|total_tokens|n_ctx|(max_)?(seq|ctx)_?len(gth)?s?(_[qkv])?"
)
_ROWS = _TOKENS + r"|n_?rows?|num_rows?|seqlen_[qkv]|batch(_?size)?|bsz|(?-i:T|B)"
ELEMENTS = re.compile(_TOKENS, re.IGNORECASE)
LENGTH = re.compile(_ROWS, re.IGNORECASE)
_BATCH = re.compile(_ROWS + r"|(?-i:M|bs|BH)|rows", re.IGNORECASE)  # of a grid
_WEIGHT = re.compile(
    r"w|b|wt|weight\w*|bias\w*|w_\w+|\w+_weight|\w+_w|gamma|beta|emb\w*|cos|sin|freqs?|\w*table|\w*cache", re.I
)


@dataclass(frozen=True, eq=False)
class Launch:
    """`kernel[grid](…)`."""

    node: ast.Call
    kernel: Kernel | None  # where it is defined in this file
    grid: ast.expr
    arguments: dict[str, ast.expr]  # parameter -> what is passed

    def options(self) -> Iterator[ast.keyword]:
        """Yield the keywords that are no parameters of the kernel."""
        names = {p.name for p in self.kernel.parameters} if self.kernel else set()
        yield from (k for k in self.node.keywords if k.arg is not None and k.arg not in names)


@dataclass(frozen=True, eq=False)
class Tuning:
    """`@triton.autotune(…)`, or a decorator with its arguments."""

    node: ast.Call
    kernel: Kernel
    configs: tuple[ast.Call, ...]  # those that are written in this file
    several: bool  # more than one configuration, as far as can be told
    keys: tuple[ast.Constant, ...]
    restored: frozenset[str]  # parameters in reset_to_zero and restore_value
    hooked: bool  # a hook may restore what it likes


class Extent(Enum):
    """What a size depends on."""

    LITERAL = "a number"
    BLOCKS = "data, divided by a block or bounded"
    FIXED = "a dimension that the model fixes"
    DATA = "data"
    UNKNOWN = "not known"


@dataclass(eq=False)
class Launches:
    """Found in one file."""

    source: Source
    all: list[Launch] = field(default_factory=list)
    tunings: list[Tuning] = field(default_factory=list)
    configs: list[ast.Call] = field(default_factory=list)  # every triton.Config

    def __post_init__(self) -> None:
        source = self.source
        for node in source.nodes:
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Subscript) and source.kernel_of(node) is None:
                self._launch(node, node.func)
            elif isinstance(node, ast.Call) and source.names.resolve(node.func) == "triton.Config":
                self.configs.append(node)
        for kernel in source.kernels:
            for decorator in kernel.node.decorator_list:
                if isinstance(decorator, ast.Call) and _is_autotune(source, decorator):
                    self.tunings.append(self._tuning(decorator, kernel))

    def of(self, kernel: Kernel) -> list[Launch]:
        """Return the launches of a kernel."""
        return [launch for launch in self.all if launch.kernel is kernel]

    def values(self, kernel: Kernel, parameter: str) -> Iterator[tuple[object, ast.expr]]:
        """Yield the literals, with their places, that launches, configurations and its default give a parameter."""
        places = [launch.arguments[parameter] for launch in self.of(kernel) if parameter in launch.arguments]
        for tuning in self.tunings:
            if tuning.kernel is kernel:
                places += [v for c in tuning.configs for v in _config_values(c, parameter)]
        declared = kernel.parameter(parameter)
        given = len(places) == len(self.of(kernel)) > 0
        if declared is not None and declared.default is not None and not given:
            places.append(declared.default)
        for place in places:
            value = self.source.constants.literal(place)
            if value is not None:
                yield value, place

    # ------------------------------------------------------------------------------------------ grids

    def grid(self, launch: Launch) -> list[ast.expr]:
        """Return the sizes of a grid along its axes, where they are written in this function; else nothing."""
        return self._tuple(launch.grid)

    def _tuple(self, node: ast.expr | None, depth: int = 3) -> list[ast.expr]:
        if isinstance(node, (ast.Tuple, ast.List)):
            return [] if any(isinstance(e, ast.Starred) for e in node.elts) else list(node.elts)
        if isinstance(node, ast.Lambda):
            return self._tuple(node.body, depth)
        if isinstance(node, ast.Name) and depth:
            value = self.source.constants.assigned(node) or self._returned(node)
            return self._tuple(value, depth - 1)
        return []

    def _returned(self, name: ast.Name) -> ast.expr | None:
        """`def grid(meta): return (…)` in the same function."""
        around = self.source.function_of(name) or self.source.tree
        for node in ast.walk(around):
            if isinstance(node, ast.FunctionDef) and node.name == name.id:
                returns = [r.value for r in ast.walk(node) if isinstance(r, ast.Return)]
                return returns[0] if len(returns) == 1 else None
        return None

    # ---------------------------------------------------------------------------------- sizes of data

    def extent(self, node: ast.expr, depth: int = 5) -> Extent:
        """Return what a size in a wrapper depends on."""
        if self.source.constants.literal(node) is not None:
            return Extent.LITERAL
        if isinstance(node, ast.BinOp):
            return self._extent_of_operation(node, depth)
        if isinstance(node, ast.Call):
            return self._extent_of_call(node)
        if isinstance(node, ast.Subscript):
            return _extent_of_shape(node)
        if isinstance(node, ast.Name):
            return self._extent_of_name(node, depth)
        return Extent.UNKNOWN

    def varies(self, node: ast.expr) -> bool:
        """Return whether a size is data's, by where it comes from or, where that is not seen, by its name."""
        extent = self.extent(node)
        named = extent is Extent.UNKNOWN and any(
            isinstance(n, ast.Name) and _BATCH.fullmatch(n.id) for n in _factors(node)
        )
        return extent is Extent.DATA or named

    def _extent_of_operation(self, node: ast.BinOp, depth: int) -> Extent:
        if isinstance(node.op, (ast.FloorDiv, ast.Div, ast.Mod, ast.RShift)):
            return Extent.BLOCKS
        sides = self.extent(node.left, depth), self.extent(node.right, depth)
        for kind in (Extent.DATA, Extent.UNKNOWN, Extent.BLOCKS, Extent.FIXED):
            if kind in sides:
                return kind
        return Extent.LITERAL

    def _extent_of_call(self, node: ast.Call) -> Extent:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name in ("numel", "nelement"):
            return Extent.DATA
        if name == "size" and node.args:
            return _extent_of_index(node.func, node.args[0])
        if name in ("cdiv", "min", "ceil", "next_power_of_2", "ceil_div"):
            return Extent.BLOCKS
        return Extent.UNKNOWN

    def _extent_of_name(self, node: ast.Name, depth: int) -> Extent:
        if _FIXED.fullmatch(node.id):
            return Extent.FIXED
        values = self.source.constants.every_assigned(node)
        if not values or not depth:
            return Extent.UNKNOWN
        kinds = {self.extent(v, depth - 1) if v is not OPAQUE else Extent.UNKNOWN for v in values}
        return kinds.pop() if len(kinds) == 1 else Extent.UNKNOWN

    # ------------------------------------------------------------------------------------- collecting

    def _launch(self, node: ast.Call, function: ast.Subscript) -> None:
        name = _kernel_name(function.value)
        kernel = self.source.kernel(name) if name else None
        launched = kernel is not None or "kernel" in name.lower() or keyword(node, "num_warps") is not None
        if not launched:
            return
        arguments: dict[str, ast.expr] = {}
        if kernel is not None:
            for parameter, value in zip(kernel.parameters, node.args, strict=False):
                if isinstance(value, ast.Starred):
                    break
                arguments[parameter.name] = value
        arguments |= {k.arg: k.value for k in node.keywords if k.arg is not None}
        self.all.append(Launch(node, kernel, function.slice, arguments))

    def _tuning(self, node: ast.Call, kernel: Kernel) -> Tuning:
        configs = keyword(node, "configs") or (node.args[0] if node.args else None)
        found = tuple(self._configs(configs))
        key = keyword(node, "key") or (node.args[1] if len(node.args) > 1 else None)
        elements = key.elts if isinstance(key, (ast.List, ast.Tuple)) and keyword(node, "strategy") is None else []
        restored = [keyword(node, "reset_to_zero"), keyword(node, "restore_value")]
        hooked = any(keyword(c, "pre_hook") is not None for c in (node, *found))
        return Tuning(
            node, kernel, found,
            several=not (isinstance(configs, ast.List) and len(configs.elts) < 2 and not _starred(configs)),
            keys=tuple(k for k in elements if isinstance(k, ast.Constant) and isinstance(k.value, str)),
            restored=frozenset(str(c.value) for r in restored if r for c in ast.walk(r) if isinstance(c, ast.Constant)),
            hooked=hooked,
        )  # fmt: skip

    def _configs(self, node: ast.AST | None, depth: int = 3) -> Iterator[ast.Call]:
        """Yield the `triton.Config(…)` in an expression, through names and functions of this file."""
        for child in ast.walk(node) if node is not None else ():
            if isinstance(child, ast.Call) and self.source.names.resolve(child.func) == "triton.Config":
                yield child
            elif isinstance(child, ast.Name) and depth:
                for value in self.source.constants.every_assigned(child):
                    yield from self._configs(value, depth - 1)
            elif isinstance(child, ast.Call) and isinstance(child.func, ast.Name) and depth:
                for function in self.source.tree.body:
                    if isinstance(function, ast.FunctionDef) and function.name == child.func.id:
                        yield from self._configs(function, depth - 1)


def _factors(node: ast.expr) -> list[ast.expr]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        return [*_factors(node.left), *_factors(node.right)]
    return [node]


def _kernel_name(node: ast.expr) -> str:
    if isinstance(node, ast.Call) and node.args:  # torch.library.wrap_triton(kernel)[grid](…)
        return _kernel_name(node.args[0])
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _is_autotune(source: Source, decorator: ast.Call) -> bool:
    named = source.names.resolve(decorator.func) == "triton.autotune"
    return named or (keyword(decorator, "configs") is not None and keyword(decorator, "key") is not None)


def _config_values(config: ast.Call, parameter: str) -> Iterator[ast.expr]:
    for node in config.args[:1]:
        if isinstance(node, ast.Dict):
            for name, value in zip(node.keys, node.values, strict=True):
                if isinstance(name, ast.Constant) and name.value == parameter:
                    yield value


def _starred(node: ast.List) -> bool:
    return any(isinstance(e, ast.Starred) for e in node.elts)


def _extent_of_shape(node: ast.Subscript) -> Extent:
    """`x.shape[0]`, and `M, N = x.shape`, which is kept as `x.shape[0]`, `x.shape[1]`."""
    owner = node.value
    if (
        isinstance(owner, ast.Call)
        and isinstance(owner.func, ast.Attribute)
        and owner.func.attr == "size"
        and not owner.args
    ):
        owner = owner.func  # M, N = x.size()
    if isinstance(owner, ast.Attribute) and owner.attr in ("shape", "size"):
        return _extent_of_index(owner, node.slice)
    return Extent.UNKNOWN


def _extent_of_index(owner: ast.expr, index: ast.expr) -> Extent:
    """The leading dimension of an activation varies from call to call; weights and inner dimensions do not."""
    tensor = owner.value if isinstance(owner, ast.Attribute) else owner
    name = tensor.id if isinstance(tensor, ast.Name) else tensor.attr if isinstance(tensor, ast.Attribute) else ""
    if _WEIGHT.fullmatch(name):
        return Extent.FIXED
    position = index.value if isinstance(index, ast.Constant) else None
    return Extent.DATA if position == 0 else Extent.UNKNOWN
