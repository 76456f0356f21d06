"""The methods of a block of pointers, each called as one."""

from functools import partial

import torch
import triton
import triton.language as tl

from portability.kernels.api._probe import BLOCK, empty, probe, zeros

atomic = partial(probe, group="methods", relative=0.0, dtypes=("int32",), BLOCK=BLOCK)


@triton.jit
def update_kernel(x_ptr, out_ptr, NAME: tl.constexpr, BLOCK: tl.constexpr):
    """out = NAME(out, x), with NAME a method of the pointers."""
    offsets = tl.arange(0, BLOCK)
    getattr(out_ptr + offsets, NAME)(tl.load(x_ptr + offsets))


@triton.jit
def swap_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    """out = x where out is 0, which it is everywhere."""
    offsets = tl.arange(0, BLOCK)
    (out_ptr + offsets).atomic_cas(tl.zeros((BLOCK,), tl.int32), tl.load(x_ptr + offsets))


@triton.jit
def atomic_load_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, (x_ptr + offsets).atomic_load())


@triton.jit
def atomic_poll_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    """out = whether x became what it is already."""
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, (x_ptr + offsets).atomic_poll(tl.load(x_ptr + offsets)).to(tl.int32))


@triton.jit
def advance_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    """The second half of x, through a block pointer."""
    HALF: tl.constexpr = BLOCK // 2
    half = tl.make_block_ptr(x_ptr, (BLOCK,), (1,), (0,), (HALF,), (0,))
    tl.store(out_ptr + tl.arange(0, HALF), tl.load(half.advance((HALF,))))


def update(name, reference):
    """The probe of an atomic method on memory that holds 5."""
    return atomic(
        f"tensor.{name}", update_kernel, lambda x: reference(torch.full_like(x, 5), x),
        out=lambda x: torch.full_like(x, 5), NAME=name,
    )  # fmt: skip


CASES = [
    update("atomic_add", torch.add),
    update("atomic_max", torch.maximum),
    update("atomic_min", torch.minimum),
    update("atomic_and", torch.bitwise_and),
    update("atomic_or", torch.bitwise_or),
    update("atomic_xor", torch.bitwise_xor),
    update("atomic_xchg", lambda _, x: x),
    update("atomic_store", lambda _, x: x),
    update("store", lambda _, x: x),
    atomic("tensor.atomic_cas", swap_kernel, torch.clone, out=zeros(BLOCK)),
    atomic("tensor.atomic_load", atomic_load_kernel, torch.clone),
    atomic("tensor.atomic_poll", atomic_poll_kernel, torch.ones_like),
    atomic("tensor.advance", advance_kernel, lambda x: x[BLOCK // 2 :], out=empty(BLOCK // 2), dtypes=("float32",)),
]  # fmt: skip
