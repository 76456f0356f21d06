"""What probes are made of: one factory, the kernels that many probes share, and the inputs that they draw.

A probe asks one question of the language. Its sample is one block that is always full (a masked access is a probe
of its own), so that nothing else than the question can fail. A function of the language is named to a kernel by a
string and found there with `getattr`: a name that the installed Triton lacks is then refused by its own front end,
and the cached binary is keyed by the name and not by an address.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import triton
import triton.language as tl

from portability.kernel import Blocks, Draw, Inputs, KernelCase, Sample

BLOCK = 64  # elements of a probe's block
ROWS = 4  # of a two-dimensional one, with BLOCK columns

FLOATS = ("float32", "float16", "bfloat16", "float64")
SIGNED = ("int32", "int8", "int16", "int64")
UNSIGNED = ("uint32", "uint8", "uint16", "uint64")
INTEGERS = (*SIGNED, *UNSIGNED)
FLOAT8 = ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz")


@triton.jit
def call_kernel(x_ptr, y_ptr, z_ptr, out_ptr, FN: tl.constexpr, BLOCK: tl.constexpr):
    """out = FN(x), FN(x, y) or FN(x, y, z), with FN a jitted function."""
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    if y_ptr is None:
        value = FN(x)
    elif z_ptr is None:
        value = FN(x, tl.load(y_ptr + offsets))
    else:
        value = FN(x, tl.load(y_ptr + offsets), tl.load(z_ptr + offsets))
    tl.store(out_ptr + offsets, value)


@triton.jit
def name_kernel(x_ptr, y_ptr, z_ptr, out_ptr, NAME: tl.constexpr, BLOCK: tl.constexpr):
    """out = tl.NAME(x), tl.NAME(x, y) or tl.NAME(x, y, z)."""
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    if y_ptr is None:
        value = getattr(tl, NAME)(x)
    elif z_ptr is None:
        value = getattr(tl, NAME)(x, tl.load(y_ptr + offsets))
    else:
        value = getattr(tl, NAME)(x, tl.load(y_ptr + offsets), tl.load(z_ptr + offsets))
    tl.store(out_ptr + offsets, value)


def one(draw: Draw) -> Inputs:
    """One block of normal values."""
    return (draw.normal(BLOCK),)


def two(draw: Draw) -> Inputs:
    """Two blocks of normal values."""
    return draw.normal(BLOCK), draw.normal(BLOCK)


def three(draw: Draw) -> Inputs:
    """Three blocks of normal values."""
    return draw.normal(BLOCK), draw.normal(BLOCK), draw.normal(BLOCK)


def positive(draw: Draw) -> Inputs:
    """One block of values in [0.25, 4), the domain of a logarithm and a root."""
    return (draw.uniform(BLOCK, low=0.25, high=4.0),)


def rows(draw: Draw) -> Inputs:
    """One block of ROWS × BLOCK normal values."""
    return (draw.normal(ROWS, BLOCK),)


def nothing(_draw: Draw) -> Inputs:
    """No input: the kernel makes its values."""
    return ()


def like(*inputs: Any) -> torch.Tensor:
    """An output of the first input's shape and dtype."""
    return torch.empty_like(inputs[0])


def empty(*shape: int, dtype: torch.dtype | None = None) -> Callable[..., torch.Tensor]:
    """An output of `shape`, of `dtype` or of the first input's."""

    def make(*inputs: Any) -> torch.Tensor:
        device = inputs[0].device if inputs else None
        return torch.empty(shape, dtype=dtype or inputs[0].dtype, device=device)

    return make


def magnitude(x: torch.Tensor) -> torch.Tensor:
    """|x| in float64, also of the dtypes in which torch has no `abs`."""
    return x.to(torch.float64).abs()


def relative(reference: Callable[..., Any]) -> Callable[..., Any]:
    """Σ|terms| of a function whose error is in proportion to its result."""

    def terms(*inputs: Any) -> Any:
        result = reference(*inputs)
        return tuple(map(magnitude, result)) if isinstance(result, tuple) else magnitude(result)

    return terms


def probe(
    names: str | Sequence[str],
    kernel: Any,
    reference: Callable[..., Any],
    *,
    group: str,
    name: str = "",
    inputs: Callable[[Draw], Inputs] = one,
    absent: int = 0,
    out: Callable[..., Any] = like,
    dtypes: Sequence[str] = FLOATS,
    grid: Any = (1,),
    terms: Callable[..., Any] | None = None,
    **case: Any,
) -> KernelCase:
    """Return the case of `kernel[grid](*inputs, *outputs, **constants)`.

    names      the language's names that it is about; the first is the case's name unless `name` says otherwise
    absent     pointers between inputs and outputs that are None
    out        makes the outputs from the inputs
    terms      see `KernelCase`; by default the absolute value of the reference
    case       further fields of `KernelCase`; what is not one of them is a constant or an option of the launch
    """
    names = (names,) if isinstance(names, str) else tuple(names)
    constants = {key: case.pop(key) for key in list(case) if key not in KernelCase.__dataclass_fields__}

    def operator(*given: Any, blocks: Blocks | None = None) -> Any:
        made = out(*given)
        outputs = made if isinstance(made, tuple) else (made,)
        kernel[grid](*given, *[None] * absent, *outputs, **{**constants, **(blocks or {})})
        return made

    operator.__doc__ = f"Probe of {', '.join(names)}."
    return KernelCase(
        name=name or names[0],
        operator=operator,
        reference=reference,
        samples=[Sample("64", inputs, quick=True)],
        dtypes=dtypes,
        terms=terms or relative(reference),
        group=group,
        names=names,
        **case,
    )


def named(function: str, reference: Callable[..., Any], *, arity: int = 1, **case: Any) -> KernelCase:
    """Return the probe of the elementwise `tl.<function>` of `arity` blocks."""
    inputs = case.pop("inputs", (one, two, three)[arity - 1])
    return probe(
        f"tl.{function}", name_kernel, reference, inputs=inputs, absent=3 - arity, NAME=function, BLOCK=BLOCK, **case
    )


def called(
    names: str | Sequence[str], function: Any, reference: Callable[..., Any], *, arity: int = 1, **case: Any
) -> KernelCase:
    """Return the probe of a jitted function of `arity` blocks, which holds the expression in question."""
    inputs = case.pop("inputs", (one, two, three)[arity - 1])
    return probe(names, call_kernel, reference, inputs=inputs, absent=3 - arity, FN=function, BLOCK=BLOCK, **case)
