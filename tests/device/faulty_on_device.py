"""Kernel cases with faults that only a device shows; a project of its own takes them by matrix.toml."""

import torch
import triton
import triton.language as tl

from portability.kernel import KernelCase, Sample


@triton.jit
def double_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) * 2, mask=mask)


@triton.jit
def pairs_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """Two float32 at a time, which must lie at a multiple of 8 bytes."""
    offsets = tl.arange(0, BLOCK)
    pairs = tl.load(x_ptr.to(tl.pointer_type(tl.int64)) + offsets, mask=2 * offsets < n)
    low, high = pairs.to(tl.int32).to(tl.float32, bitcast=True), (pairs >> 32).to(tl.int32).to(tl.float32, bitcast=True)
    tl.store(out_ptr + 2 * offsets, low * 2, mask=2 * offsets < n)
    tl.store(out_ptr + 2 * offsets + 1, high * 2, mask=2 * offsets < n)


@triton.jit
def total_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out_ptr, tl.sum(tl.load(x_ptr + offsets, mask=offsets < n, other=0.0), 0))


def doubled(x, blocks=None):
    """Return 2x."""
    out = torch.empty_like(x)
    double_kernel[(triton.cdiv(x.numel(), 128),)](x, out, x.numel(), BLOCK=128)
    return out


def in_the_default_stream(x, blocks=None):
    """Return 2x, launched in the default stream whatever the current one is."""
    with torch.cuda.stream(torch.cuda.default_stream(x.device)):
        return doubled(x)


def in_pairs(x, blocks=None):
    """Return 2x by 8 bytes at a time, wherever x lies."""
    out = torch.empty_like(x)
    pairs_kernel[(1,)](x, out, x.numel(), BLOCK=128)
    return out


def total(x, blocks=None):
    """Return the sum of x by atomics, which a device makes in an order of its own."""
    out = torch.zeros(1, device=x.device)
    total_kernel[(triton.cdiv(x.numel(), 32),)](x, out, x.numel(), BLOCK=32)
    return out


def case(name, operator, reference, elements, **more):
    sample = Sample("one", lambda draw: (draw.normal(elements),))
    return KernelCase(name=name, operator=operator, reference=reference, samples=[sample], dtypes=["float32"], **more)


CASES = [
    case("doubled", doubled, lambda x: x * 2, 256),
    case("in_the_default_stream", in_the_default_stream, lambda x: x * 2, 256),
    case("in_pairs", in_pairs, lambda x: x * 2, 256),
    case("total", total, lambda x: x.sum().reshape(1), 1 << 20, terms=lambda x: x.abs().sum().reshape(1)),
    case(
        "total_in_any_order", total, lambda x: x.sum().reshape(1), 1 << 20, deterministic=False,
        terms=lambda x: x.abs().sum().reshape(1),
    ),
]  # fmt: skip
