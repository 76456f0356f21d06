# mypy: disable-error-code="untyped-decorator, no-untyped-def, misc"
"""Kernels whose launches are recorded and compiled again."""

from __future__ import annotations

import enum
from typing import Any, NamedTuple

import triton
import triton.language as tl
from triton.language.extra import libdevice

FACTOR = tl.constexpr(3)


class Kind(enum.Enum):
    """A member that a kernel may be given."""

    SUM = 1


class Pair(NamedTuple):
    """Two arguments in one."""

    x: Any
    n: int


@triton.jit
def tripled(x):
    """A helper, and what it takes from around it."""
    return x * FACTOR


@triton.jit
def scale(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    """y = 3 x."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tripled(tl.load(x_ptr + i, mask=i < n)), mask=i < n)


@triton.autotune([triton.Config({"BLOCK": b}, num_warps=w) for b, w in ((128, 4), (256, 32))], key=["n"])
@triton.heuristics({"EVEN": lambda given: given["n"] % given["BLOCK"] == 0})
@triton.jit
def tuned(x_ptr, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    """x = 1."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if EVEN:
        tl.store(x_ptr + i, 1.0)
    else:
        tl.store(x_ptr + i, 1.0, mask=i < n)


@triton.jit
def unmasked(x_ptr, y_ptr, BLOCK: tl.constexpr):
    """Reads and writes past the end."""
    i = tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.load(x_ptr + i))


@triton.jit
def gathered(x_ptr, index_ptr, y_ptr, BLOCK: tl.constexpr):
    """y = x[index]."""
    i = tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.load(x_ptr + tl.load(index_ptr + i)))


@triton.jit
def scattered(x_ptr, index_ptr, y_ptr):
    """y[index] = x."""
    i = tl.program_id(0)
    tl.store(y_ptr + tl.load(index_ptr + i), tl.load(x_ptr + i))


@triton.jit
def through_addresses(addresses_ptr, y_ptr):
    """y is what lies at an address that is held in memory."""
    address = tl.load(addresses_ptr).to(tl.pointer_type(tl.float32))
    tl.store(y_ptr, tl.load(address))


@triton.jit
def added(x_ptr, y_ptr):
    """y = Σ x, in whichever order the programs come."""
    tl.atomic_add(y_ptr, tl.load(x_ptr + tl.program_id(0)))


@triton.jit
def last_wins(x_ptr, y_ptr):
    """y is the value of the program that comes last."""
    tl.store(y_ptr, tl.load(x_ptr + tl.program_id(0)))


@triton.jit
def refused(x_ptr, BLOCK: tl.constexpr):
    """No target compiles it."""
    i = tl.arange(0, BLOCK)
    tl.store(x_ptr + i, tl.no_such_function(i))


@triton.jit
def half_tanh(x_ptr, BLOCK: tl.constexpr):
    """libdevice has no such function of float16."""
    i = tl.arange(0, BLOCK)
    tl.store(x_ptr + i, libdevice.tanh(tl.load(x_ptr + i)))


def made_within(factor: tl.constexpr) -> Any:
    """Return a kernel that no module holds."""

    @triton.jit
    def local(x_ptr, n, BLOCK: tl.constexpr):
        i = tl.arange(0, BLOCK)
        tl.store(x_ptr + i, tripled(i) * factor, mask=i < n)

    return local


@triton.autotune([triton.Config({}, num_warps=4)], key=["n"])
@triton.heuristics({"BLOCK": lambda given: 64 if given["n"] else 128})
@triton.heuristics({"EVEN": lambda given: given["n"] % 64 == 0})
@triton.heuristics({"HAS_Y": lambda given: given["y_ptr"] is not None})
@triton.heuristics({"FAR": lambda given: given["n"] > 2**30})
@triton.heuristics({"ODD": lambda given: given["n"] % 2 == 1})
@triton.jit
def decorated(
    x_ptr, y_ptr, n, BLOCK: tl.constexpr, EVEN: tl.constexpr, HAS_Y: tl.constexpr, FAR: tl.constexpr, ODD: tl.constexpr
):
    """y = 3 x, by as many decorators as a package puts on one kernel."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tripled(tl.load(x_ptr + i, mask=i < n)), mask=i < n)
