"""What a kernel tells the compiler of its values. A hint that holds changes no result."""

from functools import partial

import torch
import triton
import triton.language as tl

from portability.kernels.api._probe import BLOCK, probe

hint = partial(probe, group="hints", relative=0.0, reference=torch.clone, BLOCK=BLOCK)


@triton.jit
def multiple_of_kernel(x_ptr, out_ptr, stride, BLOCK: tl.constexpr):
    """out = x, whose stride is a multiple of 16."""
    offsets = tl.multiple_of(stride, 16) - BLOCK + tl.multiple_of(tl.arange(0, BLOCK), [1])
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets))


@triton.jit
def max_contiguous_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    """out = x, at offsets that are contiguous."""
    offsets = tl.max_contiguous(tl.multiple_of(tl.arange(0, BLOCK), BLOCK), BLOCK)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets))


@triton.jit
def max_constancy_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """out = x, under a mask that is constant over 16 elements."""
    offsets = tl.arange(0, BLOCK)
    mask = tl.max_constancy(offsets < n, [16])
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask), mask=mask)


@triton.jit
def assume_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """out = x, with a number that is known not to be negative."""
    tl.assume(n >= 0)
    offsets = tl.arange(0, BLOCK) + n // (2 * BLOCK)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets))


@triton.jit
def debug_barrier_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    """out = x reversed, by way of memory, with a barrier between the threads that write and those that read."""
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(x_ptr + BLOCK - 1 - offsets))
    tl.debug_barrier()
    reversed_once = tl.load(out_ptr + BLOCK - 1 - offsets)
    tl.debug_barrier()
    tl.store(out_ptr + offsets, reversed_once)


DTYPES = ("float32", "float16")

CASES = [
    hint("tl.multiple_of", multiple_of_kernel, stride=BLOCK, dtypes=DTYPES),
    hint("tl.max_contiguous", max_contiguous_kernel, dtypes=DTYPES),
    hint("tl.max_constancy", max_constancy_kernel, n=BLOCK, dtypes=DTYPES),
    hint("tl.assume", assume_kernel, n=BLOCK, dtypes=DTYPES),
    hint("tl.debug_barrier", debug_barrier_kernel, dtypes=DTYPES),
]  # fmt: skip
