"""Kernel cases of one kind of fault each on Ascend; imported by the runner of its environment, not by tests."""

import torch
import triton
import triton.language as tl

from portability.kernel import KernelCase, Sample


@triton.jit
def swish_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=0.0)
    tl.store(out_ptr + offsets, x / (1.0 + tl.exp(-x)), mask=offsets < n)


@triton.autotune([triton.Config({"BLOCK": b}) for b in (256, 65536)], key=["n"])
@triton.jit
def tuned_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=offsets < n), mask=offsets < n)


@triton.jit
def product_kernel(a_ptr, b_ptr, out_ptr, N: tl.constexpr):
    at = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(out_ptr + at, tl.dot(tl.load(a_ptr + at), tl.load(b_ptr + at)))


@triton.jit
def sort_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.sort(tl.load(x_ptr + offsets)))


@triton.jit
def before_kernel(ptr, out_ptr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    before = tl.load(ptr - 1 + at, mask=at > 0, other=0.0)
    tl.store(out_ptr + at, before)


@triton.jit
def assembly_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    y = tl.inline_asm_elementwise("rcp $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1)
    tl.store(out_ptr + offsets, y)


def swish(block, programs=1):
    def operator(x, blocks=None):
        out = torch.empty_like(x)
        swish_kernel[(programs,)](x, out, x.numel(), BLOCK=block)
        return out

    return operator


def counted(x, blocks=None):
    out = torch.empty_like(x)
    swish_kernel[lambda meta: (triton.cdiv(meta["n"], meta["BLOCK"]),)](x, out, x.numel(), BLOCK=1, num_warps=8)
    return out


def tuned(x, blocks=None):
    out = torch.empty_like(x)
    tuned_kernel[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, out, x.numel())
    return out


def product(x, blocks=None):
    out = torch.empty(64, 64)
    product_kernel[(1,)](x, x, out, N=64)
    return out


def plain(kernel):
    def operator(x, blocks=None):
        out = torch.empty_like(x)
        kernel[(1,)](x, out, BLOCK=64)
        return out

    return operator


def unknown_option(x, blocks=None):
    out = torch.empty_like(x)
    sort_kernel[(1,)](x, out, BLOCK=64, waves_per_eu=2)
    return out


def case(name, operator, elements=100_000, dtypes=("float32",)):
    sample = Sample("one", lambda draw: (draw.normal(elements),))
    return KernelCase(name=name, operator=operator, reference=lambda x: x, samples=[sample], dtypes=dtypes)


CASES = [
    case("fits", swish(1024), dtypes=("float32", "float64")),
    case("unified_buffer", swish(65536)),
    case("too_many_programs", counted),
    case("no_programs", swish(1024, programs=0)),
    case("tuned", tuned),
    case("product", product, elements=64 * 64),
    case("sort_of_integers", plain(sort_kernel), elements=64, dtypes=("int32",)),
    case("negative_offset", plain(before_kernel), elements=64),
    case("assembly", plain(assembly_kernel), elements=64),
    case("unknown_option", unknown_option, elements=64),
]
