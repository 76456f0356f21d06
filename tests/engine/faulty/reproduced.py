"""Kernels that fail each in its own way, for files that show it: helpers elsewhere, larger samples than are needed."""

import torch
import triton
import triton.language as tl
from faulty import helpers
from faulty.helpers import leaky as activation

from portability.kernel import Blocks, KernelCase, Sample

OFFSET = tl.constexpr(3)


@triton.jit
def scaled(x, by: tl.constexpr):
    """Another one of this name than helpers.scaled."""
    return x + by


@triton.jit
def rows_kernel(x_ptr, out_ptr, columns, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)  # one block only: what follows it in a row is never written
    x = tl.load(x_ptr + row * stride + offsets, mask=offsets < columns, other=0.0)
    y = activation(scaled(helpers.scaled(x, 2), OFFSET))
    tl.store(out_ptr + row * columns + offsets, y, mask=offsets < columns)


def one_block(x, blocks=None):
    """Return an activation, of the first BLOCK columns alone."""
    out = torch.zeros_like(x)
    rows_kernel[(x.shape[0],)](x, out, x.shape[1], x.stride(0), **blocks)
    return out


def one_block_reference(x):
    y = 2 * x + OFFSET.value
    return torch.where(y > 0, y, 0.5 * y)


@triton.jit
def total_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    part = tl.sum(tl.load(x_ptr + offsets, mask=offsets < n, other=0.0), axis=0)
    tl.store(out_ptr, tl.load(out_ptr) * 0.5 + part)  # no atomic: programs overwrite each other


def racing(x, blocks=None):
    """Return a sum that depends on the order of programs."""
    out = torch.zeros(1, dtype=x.dtype)
    total_kernel[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), BLOCK=64)
    return out


def racing_reference(x):
    out = torch.zeros(1, dtype=x.dtype)
    for start in range(0, x.numel(), 64):
        out = out * 0.5 + x[start : start + 64].sum()
    return out


@triton.jit
def undefined_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr, tl.sum(tl.load(x_ptr + offsets, mask=offsets < n), axis=0))


def undefined(x, blocks=None):
    """Return a sum that takes masked lanes in."""
    out = torch.empty(1, dtype=x.dtype)
    undefined_kernel[(1,)](x, out, x.numel(), BLOCK=128)
    return out


@triton.jit
def refused_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.no_such_function(tl.load(x_ptr + offsets)))


def refused(x, blocks=None):
    """Call what the language has not."""
    out = torch.empty_like(x)
    refused_kernel[(1,)](x, out, BLOCK=64)
    return out


@triton.jit
def add_one_kernel(x_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(x_ptr + offsets, tl.load(x_ptr + offsets) + 1)


def in_place(x, blocks=None):
    """Return x + 1, and write it into x as well."""
    add_one_kernel[(1,)](x, BLOCK=64)
    return x.clone()


def chained(x, scale, blocks=None):
    """Return two results of two launches with operations of torch between them; the second is wrong."""
    first = torch.empty_like(x)
    rows_kernel[(x.shape[0],)](x, first, x.shape[1], x.stride(0), BLOCK=64)
    turned = (first.T * scale).contiguous()
    second = torch.empty_like(turned)
    rows_kernel[(turned.shape[0],)](turned, second, turned.shape[1], turned.stride(0), BLOCK=64)
    return first[:, 1:], second.sum(dim=0)


def chained_reference(x, scale):
    first = one_block_reference(x)
    second = one_block_reference(first.T * scale)
    return first[:, 1:], second.sum(dim=0) + 1


def matrix(rows, columns):
    return lambda draw: (draw.normal(rows, columns),)


def vector(n):
    return lambda draw: (draw.normal(n),)


CASES = [
    KernelCase(
        name="one_block", operator=one_block, reference=one_block_reference, dtypes=("float16", "float32"),
        samples=[Sample("33x257", matrix(33, 257), quick=True), Sample("40x300", matrix(40, 300))],
        blocks=Blocks(BLOCK=128),
    ),
    KernelCase(
        name="chained", operator=chained, reference=chained_reference, dtypes=["float32"],
        samples=[Sample("5x7", lambda draw: (draw.normal(5, 7), 2))],
    ),
    KernelCase(name="racing", operator=racing, reference=racing_reference, dtypes=["float32"],
               samples=[Sample("200", vector(200))]),
    KernelCase(name="undefined", operator=undefined, reference=lambda x: x.sum().reshape(1), dtypes=["float32"],
               samples=[Sample("100", vector(100))]),
    KernelCase(name="refused", operator=refused, reference=lambda x: x, dtypes=["float32"],
               samples=[Sample("64", vector(64))]),
    KernelCase(name="in_place", operator=in_place, reference=lambda x: x + 1, dtypes=["float32"],
               samples=[Sample("64", vector(64))]),
]  # fmt: skip
