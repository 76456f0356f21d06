"""A kernel for each trap between Triton and native code of an Intel GPU."""

import torch
import triton
import triton.language as tl

from portability.kernel import Blocks, KernelCase, Sample


@triton.jit
def double_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) * 2, mask=mask)


@triton.jit
def convert_kernel(x_ptr, out_ptr, n, ADD: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    if ADD:
        x = x + x
    tl.store(out_ptr + offsets, x.to(tl.float32).to(x.dtype), mask=offsets < n)


@triton.jit
def product_kernel(a_ptr, b_ptr, out_ptr, M: tl.constexpr, K: tl.constexpr):
    m, k = tl.arange(0, M), tl.arange(0, K)
    a = tl.load(a_ptr + m[:, None] * K + k[None, :])
    b = tl.load(b_ptr + k[:, None] * M + m[None, :])
    tl.store(out_ptr + m[:, None] * M + m[None, :], tl.dot(a, b))


@triton.jit
def ptx_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    y = tl.inline_asm_elementwise("rcp.approx.ftz.f32 $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1)
    tl.store(out_ptr + offsets, y)


@triton.jit
def visa_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    text: tl.constexpr = "add (M1, 32) $0(0,0)<1> $1(0,0)<1;1,0> $1(0,0)<1;1,0>"
    y = tl.inline_asm_elementwise(text, "=rw,rw", [x], dtype=tl.float32, is_pure=True, pack=1)
    tl.store(out_ptr + offsets, y)


def double(x, blocks=None, **options):
    """Return 2x."""
    out = torch.empty_like(x)
    double_kernel[(triton.cdiv(x.numel(), blocks["BLOCK"]),)](x, out, x.numel(), **blocks, **options)
    return out


def convert(x, blocks=None):  # noqa: ARG001
    """Return x by way of float32, doubled where a dtype can be added."""
    out = torch.empty_like(x)
    convert_kernel[(1,)](x, out, x.numel(), ADD=x.element_size() > 1, BLOCK=32)
    return out


def product(a, b, blocks=None):  # noqa: ARG001 - the contract of operators
    """Return a @ b, both whole in one block."""
    out = torch.empty((a.shape[0], b.shape[1]), dtype=torch.float32, device=a.device)
    product_kernel[(1,)](a, b, out, M=a.shape[0], K=a.shape[1])
    return out


def ptx(x, blocks=None):  # noqa: ARG001
    """Return 1/x, by assembly that Intel's compiler does not know."""
    out = torch.empty_like(x)
    ptx_kernel[(1,)](x, out, BLOCK=32)
    return out


def visa(x, blocks=None):  # noqa: ARG001
    """Return 2x, by assembly that it knows."""
    out = torch.empty_like(x)
    visa_kernel[(1,)](x, out, BLOCK=32)
    return out


def too_many_threads(x, blocks=None):
    """Ask for more work-items than a work-group may have."""
    return double(x, blocks | {"num_warps": 64})


def case(name, operator, reference, dtypes=("float32",), shapes=((32,),), **more):
    samples = [Sample("one", lambda draw: tuple(draw.normal(*s) for s in shapes))]
    return KernelCase(name=name, operator=operator, reference=reference, dtypes=dtypes, samples=samples, **more)


EVERY = (
    "float32", "float16", "bfloat16", "float64", "float8_e5m2", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2fnuz",
    "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool",
)  # fmt: skip
CASES = [
    case("double", double, lambda x: x * 2, ("float32", "float64"), blocks=Blocks(BLOCK=64)),
    case("convert", convert, lambda x: x + x if x.element_size() > 1 else x, EVERY),
    case("product", product, torch.matmul, ("float16",), ((64, 64), (64, 64))),
    case("over_limit", product, torch.matmul, ("float16",), ((64, 1024), (1024, 64))),
    case("too_many_threads", too_many_threads, lambda x: x * 2, blocks=Blocks(BLOCK=4096)),
    case("ptx", ptx, lambda x: 1 / x),
    case("visa", visa, lambda x: x * 2),
]
