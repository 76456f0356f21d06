"""What the linter knows of a value in a kernel without running it."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace


@dataclass(frozen=True)
class Axis:
    """One `tl.arange`, along which the lanes of a block differ; moved or not, it is another one."""

    place: tuple[int, int]  # line and column of the arange
    moved: str = ""  # the offset of a program or a loop that was added, as written
    size: str = field(default="", compare=False)  # "BLOCK_M", as written
    tiled: bool = field(default=False, compare=False)  # moved by multiples of its size: the last tile may be ragged
    inline: bool = field(default=False, compare=False)  # written into an address, and perhaps again into its mask
    safe: bool = field(default=False, compare=False)  # wrapped, clamped, in a loop over full tiles, or a loaded index


Dim = frozenset[Axis]
NOTHING: Dim = frozenset()
ZEROS = frozenset({"zeros"})  # the kinds of `tl.zeros`


@dataclass(frozen=True)
class Undefined:
    """Lanes that a masked load without `other` left undefined."""

    load: ast.Call
    axes: Dim


@dataclass(frozen=True)
class Value:
    """Facts about one value. The default is a value of which nothing is known."""

    dims: tuple[Dim, ...] | None = None  # the axes along each dimension; () a scalar, None unknown
    dtype: str = ""  # "float32", "int32", "bool", … or "" where it cannot be told
    base: str = ""  # the pointer parameter that it is an address from
    kinds: frozenset[str] = frozenset()  # program, within (modulo), grid, parameter, constant, loop, load
    number: float | int | None = None
    steps: frozenset[str] = frozenset()  # what a program's or a loop's index was multiplied with, as written
    raw: bool = False  # as it was loaded, neither cast nor computed with
    kept: bool = False  # nothing but a choice between what was loaded and constants
    undefined: frozenset[Undefined] = frozenset()
    filled: Dim = NOTHING  # axes along which a load put a finite number past the end
    exponential: bool = False  # of exp or exp2
    loads: frozenset[str] = frozenset()  # addresses that it was loaded from, as written
    product: ast.BinOp | None = field(default=None, compare=False)  # an index times a run-time stride, in 32 bits

    @property
    def axes(self) -> Dim:
        """All axes of all dimensions."""
        return frozenset().union(*(self.dims or ()))

    @property
    def scalar(self) -> bool:
        """Whether it is known to be no block."""
        return self.dims == ()

    @property
    def constant(self) -> bool:
        """Whether it is a number or a constexpr, which takes the dtype of what it meets."""
        named = "constant" in self.kinds and all(k == "constant" or k.startswith("name:") for k in self.kinds)
        return self.scalar and (self.number is not None or named)

    @property
    def integer(self) -> bool:
        """Whether its dtype is known to be an integer's."""
        return self.dtype in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")

    def mapped(self, **changes: object) -> Value:
        """The same axes after an operation on every element."""
        plain = replace(self, raw=False, kept=False, base="", number=None, product=None, steps=frozenset())
        return replace(plain, **changes)  # type: ignore[arg-type]

    def inside(self) -> Value:
        """The same value, its axes known to end nowhere inside a block."""
        if self.dims is None:
            return self
        return replace(self, dims=tuple(frozenset(replace(a, safe=True) for a in d) for d in self.dims))


UNKNOWN = Value()


@dataclass(frozen=True)
class Access:
    """A load, a store or an atomic through pointers."""

    node: ast.Call
    name: str  # "load", "store", "atomic_add"
    pointer: Value
    mask: Value | None  # None: without one
    value: Value  # what is stored
    text: str  # the address as written


@dataclass(frozen=True)
class Reduction:
    """`tl.sum`, `tl.max`, …: its operand, and the dimensions that it reduces."""

    node: ast.Call
    name: str
    operand: Value
    over: tuple[int, ...]


@dataclass(frozen=True)
class Dot:
    """`tl.dot` and its operands."""

    node: ast.Call
    left: Value
    right: Value


def broadcast(*dims: tuple[Dim, ...] | None) -> tuple[Dim, ...] | None:
    """Return the dimensions of an element-wise operation on blocks of `dims`, aligned at the right."""
    known = [d for d in dims if d is not None]
    if len(known) < len(dims):
        return None
    rank = max((len(d) for d in known), default=0)
    padded = [(NOTHING,) * (rank - len(d)) + d for d in known]
    return tuple(frozenset().union(*column) for column in zip(*padded, strict=True))


def filled_after_sum(left: Value, right: Value) -> Dim:
    """Return the axes whose filler survives an addition: a block that varies along one may hold -inf past the end."""
    return _kept_fill(left, right) | _kept_fill(right, left)


def _kept_fill(value: Value, other: Value) -> Dim:
    if value.dims is None or other.dims is None or other.kinds == ZEROS:
        return value.filled if other.kinds == ZEROS else NOTHING
    offset = len(value.dims) - len(other.dims)
    varying = frozenset().union(*(d for i, d in enumerate(value.dims) if i >= offset and other.dims[i - offset]))
    return value.filled - (varying - other.filled)


def join(a: Value, b: Value) -> Value:
    """Return what holds where either value may be."""
    if a == b:
        return a
    same_rank = a.dims is not None and b.dims is not None and len(a.dims) == len(b.dims)
    return Value(
        dims=broadcast(a.dims, b.dims) if same_rank else None,
        dtype=a.dtype if a.dtype == b.dtype else "",
        base=a.base or b.base,
        kinds=a.kinds | b.kinds,
        steps=a.steps | b.steps,
        number=a.number if a.number == b.number else None,
        raw=a.raw and b.raw,
        kept=a.kept and b.kept,
        undefined=a.undefined | b.undefined,
        filled=a.filled & b.filled,  # a select in one branch is taken to cover the other, as tail branches do
        exponential=a.exponential and b.exponential,
        loads=a.loads | b.loads,
        product=a.product or b.product,
    )


def combined(values: Sequence[Value], **changes: object) -> Value:
    """Return an element-wise function of `values`."""
    out = Value(
        dims=broadcast(*(v.dims for v in values)),
        dtype=promoted("literal" if v.constant else v.dtype for v in values),
        kinds=frozenset().union(*(v.kinds for v in values)),
        undefined=frozenset().union(*(v.undefined for v in values)),
        filled=frozenset().union(*(v.filled for v in values)),
        loads=frozenset().union(*(v.loads for v in values)),
    )
    return replace(out, **changes)  # type: ignore[arg-type]


def promoted(dtypes: Iterable[str]) -> str:
    """Return the dtype of an operation: float32 with anything narrower or unknown stays float32; a literal changes
    nothing; else "" where one is unknown.
    """
    found = [d for d in dtypes if d != "literal"]
    for wide in ("float64", "float32"):
        if wide in found:
            return wide
    if "int64" in found and not any("float" in d for d in found):
        return "int64"  # with something unknown too: wide enough, which is what matters of it
    if not found or "" in found:
        return ""
    floats = [d for d in found if "float" in d]
    if floats:
        return floats[0] if all(d == floats[0] for d in floats) else "float32"
    if "uint64" in found:
        return "int64"
    return found[0] if all(d == found[0] for d in found) else "int32"
