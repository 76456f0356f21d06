"""Atomic operations: by dtype, by memory order and scope, masked, and contended.

Except where contention is the question, every element has an address of its own, so that the value which the
operation returns is known too.
"""

from functools import partial

import torch
import triton
import triton.language as tl

from portability.kernels.api._probe import BLOCK, FLOATS, empty, probe, wide, zeros

atomic = partial(probe, group="atomics", relative=0.0, BLOCK=BLOCK)

ORDERS = ("acquire", "release", "acq_rel", "relaxed")
SCOPES = ("gpu", "cta", "sys")
WORDS = ("int32", "int64", "uint32", "uint64")
ADDRESSES = 4  # that a contended probe adds to


@triton.jit
def update_kernel(x_ptr, after_ptr, before_ptr, NAME: tl.constexpr, BLOCK: tl.constexpr):
    """before = after; after = NAME(after, x)."""
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    tl.store(before_ptr + offsets, getattr(tl, NAME)(after_ptr + offsets, x))


@triton.jit
def ordered_kernel(
    x_ptr, after_ptr, before_ptr, NAME: tl.constexpr, ORDER: tl.constexpr, SCOPE: tl.constexpr, BLOCK: tl.constexpr
):
    """The same, with a memory order and a scope."""
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    tl.store(before_ptr + offsets, getattr(tl, NAME)(after_ptr + offsets, x, sem=ORDER, scope=SCOPE))


@triton.jit
def masked_kernel(x_ptr, after_ptr, NAME: tl.constexpr, BLOCK: tl.constexpr):
    """after = NAME(after, x) in the first half."""
    offsets = tl.arange(0, BLOCK)
    getattr(tl, NAME)(after_ptr + offsets, tl.load(x_ptr + offsets), mask=offsets < BLOCK // 2)


@triton.jit
def contended_kernel(x_ptr, sum_ptr, ADDRESSES: tl.constexpr, BLOCK: tl.constexpr):
    """sum[i % ADDRESSES] += x[i], from two programs."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(sum_ptr + offsets % ADDRESSES, tl.load(x_ptr + offsets))


@triton.jit
def scalar_kernel(x_ptr, sum_ptr, BLOCK: tl.constexpr):
    """sum += Σx, from two programs."""
    tl.atomic_add(sum_ptr, tl.sum(tl.load(x_ptr + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)), axis=0))


@triton.jit
def swap_kernel(x_ptr, after_ptr, before_ptr, BLOCK: tl.constexpr):
    """after = x where after was expected to be 0, which it is in every second place."""
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    expected = (offsets % 2).to(x.dtype)
    tl.store(before_ptr + offsets, tl.atomic_cas(after_ptr + offsets, expected, x))


@triton.jit
def ordered_swap_kernel(x_ptr, after_ptr, before_ptr, ORDER: tl.constexpr, SCOPE: tl.constexpr, BLOCK: tl.constexpr):
    """The same, with a memory order and a scope."""
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    expected = (offsets % 2).to(x.dtype)
    tl.store(before_ptr + offsets, tl.atomic_cas(after_ptr + offsets, expected, x, sem=ORDER, scope=SCOPE))


@triton.jit
def load_kernel(x_ptr, out_ptr, ORDER: tl.constexpr, SCOPE: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.atomic_load(x_ptr + offsets, sem=ORDER, scope=SCOPE))


@triton.jit
def store_kernel(x_ptr, out_ptr, ORDER: tl.constexpr, SCOPE: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.atomic_store(out_ptr + offsets, tl.load(x_ptr + offsets), sem=ORDER, scope=SCOPE)


@triton.jit
def poll_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    """Wait for what is there already."""
    offsets = tl.arange(0, BLOCK)
    arrived = tl.atomic_poll(x_ptr + offsets, tl.load(x_ptr + offsets))
    tl.store(out_ptr + offsets, arrived.to(tl.int8))


@triton.jit
def timeout_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    """Wait for what never comes, one microsecond at the most."""
    offsets = tl.arange(0, BLOCK)
    arrived = tl.atomic_poll(x_ptr + offsets, tl.load(x_ptr + offsets) + 1, timeout_ns=1000)
    tl.store(out_ptr + offsets, arrived.to(tl.int8))


def memory(start):
    """The memory that is operated on, which holds `start` everywhere, and the values that are returned."""
    return lambda x: (torch.full_like(x, start), torch.empty_like(x))


def updates(function, operation, start, dtypes, **more):
    """The probe of one operation on memory that holds `start`."""

    def reference(x):
        before = torch.full_like(x, start)
        return operation(wide(before), wide(x)).to(x.dtype), before

    return atomic(
        f"tl.{function}",
        more.pop("kernel", update_kernel),
        reference,
        out=memory(start),
        dtypes=dtypes,
        NAME=function,
        **more,
    )


def swapped(x):
    even = torch.arange(BLOCK) % 2 == 0
    return (wide(x) * even).to(x.dtype), torch.zeros_like(x)


def halved(x):
    return torch.cat([x[: BLOCK // 2], torch.zeros_like(x[BLOCK // 2 :])])


def replaced(_before, x):
    return x


# Whole numbers, whose sums are exact in every dtype and order.
CONTENDED = {"inputs": lambda d: (d.integers(2 * BLOCK, low=-3, high=4),), "grid": (2,)}

CASES = [
    updates("atomic_add", torch.add, 1, (*FLOATS, *WORDS, "int8", "int16")),
    updates("atomic_max", torch.maximum, 0, (*FLOATS, *WORDS)),
    updates("atomic_min", torch.minimum, 0, (*FLOATS, *WORDS)),
    updates("atomic_and", torch.bitwise_and, 5, (*WORDS, "int8")),
    updates("atomic_or", torch.bitwise_or, 5, (*WORDS, "int8")),
    updates("atomic_xor", torch.bitwise_xor, 5, (*WORDS, "int8")),
    updates("atomic_xchg", replaced, 1, (*FLOATS, *WORDS, "int8", "int16")),
    atomic("tl.atomic_cas", swap_kernel, swapped, out=memory(0), dtypes=(*FLOATS, *WORDS, "int16", "int8")),
    *(
        updates(
            "atomic_add", torch.add, 1, ("int32",), kernel=ordered_kernel, name=f"tl.atomic_add.{order}.{scope}",
            ORDER=order, SCOPE=scope,
        )
        for order in ORDERS
        for scope in SCOPES
    ),
    *(
        updates(
            "atomic_xchg", replaced, 1, ("int32",), kernel=ordered_kernel, name=f"tl.atomic_xchg.{order}.gpu",
            ORDER=order, SCOPE="gpu",
        )
        for order in ORDERS
    ),
    *(
        atomic(
            "tl.atomic_cas", ordered_swap_kernel, swapped, name=f"tl.atomic_cas.{order}.{scope}", out=memory(0),
            dtypes=("int32",), ORDER=order, SCOPE=scope,
        )
        for order, scope in (*((order, "gpu") for order in ORDERS), ("acq_rel", "cta"), ("acq_rel", "sys"))
    ),
    atomic(
        "tl.atomic_add", masked_kernel, halved, name="tl.atomic_add.mask", out=zeros(BLOCK),
        dtypes=("float32", "int32"), NAME="atomic_add",
    ),
    atomic(
        "tl.atomic_xchg", masked_kernel, halved, name="tl.atomic_xchg.mask", out=zeros(BLOCK),
        dtypes=("float32", "int32"), NAME="atomic_xchg",
    ),
    atomic(
        "tl.atomic_add", contended_kernel, lambda x: wide(x).reshape(-1, ADDRESSES).sum(0).to(x.dtype),
        name="tl.atomic_add.contended", out=zeros(ADDRESSES), dtypes=(*FLOATS, "int32", "int64"),
        ADDRESSES=ADDRESSES, **CONTENDED,
    ),
    atomic(
        "tl.atomic_add", scalar_kernel, lambda x: x.sum().to(x.dtype), name="tl.atomic_add.scalar", out=zeros(),
        dtypes=("float32", "int32"), **CONTENDED,
    ),
    atomic(
        "tl.atomic_load", load_kernel, torch.clone, dtypes=("int32", "int64", "int8", "float32", "float16"), ORDER=None,
        SCOPE=None,
    ),
    atomic(
        "tl.atomic_store", store_kernel, torch.clone, dtypes=("int32", "int64", "int8", "float32", "float16"),
        ORDER=None, SCOPE=None,
    ),
    *(
        atomic(
            "tl.atomic_load", load_kernel, torch.clone, name=f"tl.atomic_load.{order}.{scope}", dtypes=("int32",),
            ORDER=order, SCOPE=scope,
        )
        for order, scope in (("acquire", "cta"), ("acquire", "sys"), ("relaxed", "gpu"))
    ),
    *(
        atomic(
            "tl.atomic_store", store_kernel, torch.clone, name=f"tl.atomic_store.{order}.{scope}", dtypes=("int32",),
            ORDER=order, SCOPE=scope,
        )
        for order, scope in (("release", "cta"), ("release", "sys"), ("relaxed", "gpu"))
    ),
    atomic(
        "tl.atomic_poll", poll_kernel, lambda x: torch.ones_like(x, dtype=torch.int8),
        out=empty(BLOCK, dtype=torch.int8), dtypes=("int32", "int64", "int16"),
    ),
    atomic(
        "tl.atomic_poll", timeout_kernel, lambda x: torch.zeros_like(x, dtype=torch.int8),
        name="tl.atomic_poll.timeout", out=empty(BLOCK, dtype=torch.int8), dtypes=("int32",),
    ),
]  # fmt: skip
