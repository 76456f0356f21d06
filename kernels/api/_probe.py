"""What probes are made of: one factory, two kernels that most probes share, and the inputs that they draw.

A probe asks one question of the language. Its block is always full (a masked access is a probe of its own), so that
nothing else than the question can fail, and it has at least one tensor input, which says where the outputs go. A
function of the language is named to a kernel by a string and found there with `getattr`: a name that the installed
Triton lacks is then refused by its own front end, and the cached binary is keyed by the name, not by an address (which
is what a function of Python is in the key of a launch). An expression is a jitted function that is bound to its kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

import torch
import triton
import triton.language as tl

from portability.kernel import Blocks, Draw, Inputs, KernelCase, Sample

BLOCK = 64  # elements of a probe's block
ROWS = 4  # of a two-dimensional block, which has BLOCK columns

FLOATS = ("float32", "float16", "bfloat16", "float64")
SIGNED = ("int32", "int8", "int16", "int64")
UNSIGNED = ("uint32", "uint8", "uint16", "uint64")
INTEGERS = (*SIGNED, *UNSIGNED)
NUMBERS = (*FLOATS, "int32", "int8", "int64", "uint8")
FLOAT8 = ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz")
# What a run without --full takes: the names that nearly every kernel uses.
BASIC = {
    "tl.load.mask", "tl.load.2d", "tl.dot", "tl.dot.accumulate", "tl.exp", "tl.log", "tl.sqrt", "tl.maximum",
    "tl.minimum", "tl.sum", "tl.max", "tl.min", "tl.program_id.x", "tl.program_id.y", "tl.program_id.z", "tl.arange",
    "tl.cdiv", "tl.full", "tl.broadcast_to", "tl.reshape", "tl.trans", "tl.where", "tl.static_range", "tl.atomic_add",
    "cast.float32", "cast.float16", "cast.int32",
}  # fmt: skip
# Whose extension of the language a name is, by how it begins: the other backends are not expected to have it.
VENDORS = {"tl.extra.cuda.": "cuda", "tl.extra.hip.": "rocm", "ascend.": "ascend"}
ALL = (*FLOATS, *INTEGERS, "bool", *FLOAT8)  # every dtype that torch and the language share


@triton.jit
def load_block(ptr, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """Load BLOCK elements, or ROWS × BLOCK of them where ROWS is not 0."""
    column = tl.arange(0, BLOCK)
    offsets = column if ROWS == 0 else tl.arange(0, ROWS)[:, None] * BLOCK + column[None, :]
    return tl.load(ptr + offsets)


@triton.jit
def store_block(ptr, value):
    """Store a block of any shape, row by row."""
    if len(value.shape) == 0:
        tl.store(ptr, value)
    elif len(value.shape) == 1:
        tl.store(ptr + tl.arange(0, value.shape[0]), value)
    elif len(value.shape) == 2:
        row, column = tl.arange(0, value.shape[0])[:, None], tl.arange(0, value.shape[1])[None, :]
        tl.store(ptr + row * value.shape[1] + column, value)
    else:
        tl.store(ptr + tl.arange(0, value.numel), tl.reshape(value, (value.numel,)))


FN = None  # the function in question, which `bound` puts here


@triton.jit
def call_kernel(x_ptr, y_ptr, z_ptr, out_ptr, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """out = FN(x), FN(x, y) or FN(x, y, z)."""
    x = load_block(x_ptr, ROWS, BLOCK)
    if y_ptr is None:
        store_block(out_ptr, FN(x))
    elif z_ptr is None:
        store_block(out_ptr, FN(x, load_block(y_ptr, ROWS, BLOCK)))
    else:
        store_block(out_ptr, FN(x, load_block(y_ptr, ROWS, BLOCK), load_block(z_ptr, ROWS, BLOCK)))


@triton.jit
def name_kernel(x_ptr, y_ptr, z_ptr, out_ptr, NAME: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """out = tl.NAME(x), tl.NAME(x, y) or tl.NAME(x, y, z)."""
    x = load_block(x_ptr, ROWS, BLOCK)
    if y_ptr is None:
        store_block(out_ptr, getattr(tl, NAME)(x))
    elif z_ptr is None:
        store_block(out_ptr, getattr(tl, NAME)(x, load_block(y_ptr, ROWS, BLOCK)))
    else:
        store_block(out_ptr, getattr(tl, NAME)(x, load_block(y_ptr, ROWS, BLOCK), load_block(z_ptr, ROWS, BLOCK)))


def bound(kernel: Any, function: Any) -> Any:
    """Return `kernel` with FN bound to a jitted function, which no version up to 3.2 takes as an argument."""
    fn = kernel.fn
    copy = FunctionType(fn.__code__, {**fn.__globals__, "FN": function}, fn.__name__, fn.__defaults__, fn.__closure__)
    copy.__doc__, copy.__annotations__, copy.__qualname__ = fn.__doc__, fn.__annotations__, fn.__qualname__
    return triton.jit(copy)


def normals(count: int, rows: int = 0, size: int = BLOCK) -> Callable[[Draw], Inputs]:
    """`count` blocks of normal values, of `size` elements or rows × size."""
    shape = (rows, size) if rows else (size,)
    return lambda draw: tuple(draw.normal(*shape) for _ in range(count))


def wholes(rows: int = 0, low: int = -3, high: int = 4) -> Callable[[Draw], Inputs]:
    """One block of whole numbers in [low, high), whose sums are exact in every dtype and order."""
    shape = (rows, BLOCK) if rows else (BLOCK,)
    return lambda draw: (draw.integers(*shape, low=low, high=high),)


def powers(rows: int = 0, columns: int = BLOCK) -> Callable[[Draw], Inputs]:
    """One block of ±1, ±2 and ±1/2 (for integers ±1 and ±2), whose products are exact in every dtype and order."""
    shape = (rows, columns) if rows else (columns,)

    def draw(d: Draw) -> Inputs:
        exponents = torch.tensor([0, 0, 0, 0, 1, -1])[d.integers(*shape, low=0, high=6, dtype=torch.int64)]
        signs = d.integers(*shape, low=0, high=2, dtype=torch.int64) * 2 - 1
        if not d.dtype.is_floating_point:
            return ((signs * (1 + (exponents > 0))).to(d.dtype),)
        return ((signs * torch.exp2(exponents.double())).to(d.dtype),)

    return draw


def between(low: float, high: float, count: int = 1, rows: int = 0) -> Callable[[Draw], Inputs]:
    """`count` blocks of uniform values in [low, high): the domain of a function."""
    shape = (rows, BLOCK) if rows else (BLOCK,)
    return lambda draw: tuple(
        draw.uniform(*shape, low=low, high=high)
        if draw.dtype.is_floating_point
        else draw.integers(*shape, low=int(low), high=int(high))
        for _ in range(count)
    )


def like(*inputs: Any) -> torch.Tensor:
    """An output of the first input's shape and dtype."""
    return torch.empty_like(inputs[0])


def empty(*shape: int, dtype: torch.dtype | None = None) -> Callable[..., torch.Tensor]:
    """An output of `shape`, of `dtype` or of the first input's."""
    return lambda x, *_: torch.empty(shape, dtype=dtype or x.dtype, device=x.device)


def zeros(*shape: int, dtype: torch.dtype | None = None) -> Callable[..., torch.Tensor]:
    """An output that starts at zero, for a kernel that adds to it."""
    return lambda x, *_: torch.zeros(shape, dtype=dtype or x.dtype, device=x.device)


def magnitude(x: torch.Tensor) -> torch.Tensor:
    """|x| in float64, also of the dtypes in which torch has no `abs`."""
    return x.to(torch.float64).abs()


def wide(x: torch.Tensor) -> torch.Tensor:
    """`x` in a dtype in which torch computes."""
    return x if x.is_floating_point() else x.to(torch.int64)


def running(operation: Callable[..., torch.Tensor]) -> Callable[[torch.Tensor], torch.Tensor]:
    """`operation` over the columns, one after another, with every intermediate result, rounded to the dtype."""

    def reference(x: torch.Tensor) -> torch.Tensor:
        results = [x[..., 0]]
        for column in range(1, x.shape[-1]):
            results.append(operation(results[-1], x[..., column]))
        return torch.stack(results, -1)

    return reference


def folded(operation: Callable[..., torch.Tensor]) -> Callable[[torch.Tensor], torch.Tensor]:
    """The last result of `running`."""
    return lambda x: running(operation)(x)[..., -1]


def probe(
    names: str | Sequence[str],
    kernel: Any,
    reference: Callable[..., Any],
    *,
    group: str,
    name: str = "",
    inputs: Callable[[Draw], Inputs] | None = None,
    absent: int = 0,
    arguments: Callable[..., Sequence[Any]] = lambda *tensors: tensors,
    out: Callable[..., Any] = like,
    dtypes: Sequence[str] = FLOATS,
    grid: Any = (1,),
    terms: Callable[..., Any] | None = None,
    relative: float = 1.0,
    absolute: float = 0.0,
    **more: Any,
) -> KernelCase:
    """Return the case of `kernel[grid](*inputs, *outputs, **constants)`.

    names      the language's names that it is about; the first is the case's name unless `name` says otherwise
    absent     pointers between inputs and outputs that are None
    arguments  what the launch is given for inputs and outputs, where that is not the tensors themselves
    out        makes the outputs from the inputs
    terms      see `KernelCase`; by default `relative` · |reference| + `absolute`, both 0 for what must be exact
    more       further fields of `KernelCase`; what is not one of them is a constant or an option of the launch
    """
    names = (names,) if isinstance(names, str) else tuple(names)
    constants = {key: more.pop(key) for key in list(more) if key not in KernelCase.__dataclass_fields__}

    def operator(*given: Any, blocks: Blocks | None = None) -> Any:
        made = out(*given)
        outputs = made if isinstance(made, tuple) else (made,)
        tensors = arguments(*given, *[None] * absent, *outputs)
        kernel[grid](*tensors, **{**constants, **(blocks or {})})
        return made

    def magnitudes(*given: Any) -> Any:
        results = reference(*given)
        results = results if isinstance(results, tuple) else (results,)
        return tuple(relative * magnitude(r) + absolute for r in results)

    operator.__doc__ = f"Probe of {', '.join(names)}."
    return KernelCase(
        name=name or names[0],
        operator=operator,
        reference=reference,
        samples=[Sample("64", inputs or normals(1), quick=True)],
        dtypes=dtypes,
        terms=terms or magnitudes,
        group=group,
        names=names,
        basic=(name or names[0]) in BASIC,
        vendor=next((backend for prefix, backend in VENDORS.items() if names[0].startswith(prefix)), ""),
        **more,
    )


def named(
    function: str, reference: Callable[..., Any], *, arity: int = 1, rows: int = 0, size: int = BLOCK, **more: Any
) -> KernelCase:
    """Return the probe of `tl.<function>` applied to `arity` blocks of `size` elements, or of `rows` rows of them."""
    more = {"inputs": normals(arity, rows, size), "absent": 3 - arity, **more}
    return probe(f"tl.{function}", name_kernel, reference, NAME=function, ROWS=rows, BLOCK=size, **more)


def called(
    names: str | Sequence[str],
    function: Any,
    reference: Callable[..., Any],
    *,
    arity: int = 1,
    rows: int = 0,
    size: int = BLOCK,
    **more: Any,
) -> KernelCase:
    """Return the probe of a jitted function of `arity` such blocks, which holds the expression in question."""
    more = {"inputs": normals(arity, rows, size), "absent": 3 - arity, **more}
    return probe(names, bound(call_kernel, function), reference, ROWS=rows, BLOCK=size, **more)
