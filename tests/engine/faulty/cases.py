"""One case for each way in which a kernel file can be broken."""

import os
import signal
import time

import torch
import triton
import triton.language as tl

from portability.kernel import KernelCase, Sample


@triton.jit
def double_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr, FACTOR: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) * FACTOR, mask=mask)


@triton.jit
def tile_kernel(a_ptr, b_ptr, out_ptr, M: tl.constexpr, K: tl.constexpr):
    m, k = tl.arange(0, M), tl.arange(0, K)
    a = tl.load(a_ptr + m[:, None] * K + k[None, :])
    b = tl.load(b_ptr + k[:, None] * M + m[None, :])
    tl.store(out_ptr + m[:, None] * M + m[None, :], tl.dot(a, b))


@triton.jit
def assembly_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask, other=1.0)
    y = tl.inline_asm_elementwise("rcp.approx.ftz.f32 $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1)
    tl.store(out_ptr + offsets, y, mask=mask)


@triton.jit
def far_kernel(x_ptr, out_ptr, n, FAR: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK).to(tl.int64)
    tl.store(out_ptr + offsets + FAR, tl.load(x_ptr + offsets, mask=offsets < n, other=0.0) * 2)


def double(x, blocks=None, factor=2, **options):
    """Return 2x."""
    out = torch.empty_like(x)
    double_kernel[(triton.cdiv(x.numel(), 128),)](x, out, x.numel(), BLOCK=128, FACTOR=factor, **options)
    return out


def wrong(x, blocks=None):
    """Return 3x."""
    return double(x, factor=3)


def crash(x, blocks=None):
    """End the process."""
    os.kill(os.getpid(), signal.SIGSEGV)
    return double(x)


def hang(x, blocks=None):
    """Never return."""
    while True:
        time.sleep(0.01)


def illegal(x, blocks=None):
    """Write where no memory is."""
    out = torch.empty_like(x)
    far_kernel[(1,)](x, out, x.numel(), FAR=2**42, BLOCK=128)
    return out


def beyond(x, blocks=None):
    """Write past the end of the output: its 100 elements and 28 more."""
    out = torch.empty_like(x)
    far_kernel[(1,)](x, out, x.numel(), FAR=0, BLOCK=128)
    return out


def unknown_option(x, blocks=None):
    """Give an option that no backend has."""
    return double(x, no_such_option=2)


def slow(x, blocks=None):
    """Take a while."""
    time.sleep(0.4)
    return double(x)


def nothing(x, blocks=None):
    """Launch no kernel."""
    return x * 2


def over_limit(a, b, blocks=None):
    """Hold two whole matrices in shared memory: 256 KiB."""
    out = torch.empty((64, 64), dtype=torch.float32, device=a.device)
    tile_kernel[(1,)](a, b, out, M=64, K=1024)
    return out


def reciprocal(x, blocks=None):
    """Return 1/x by PTX."""
    out = torch.empty_like(x)
    assembly_kernel[(1,)](x, out, x.numel(), BLOCK=128)
    return out


def vector(draw):
    return (draw.normal(100),)


def case(name, operator, reference, **more):
    return KernelCase(
        name=name, operator=operator, reference=reference, samples=[Sample("100", vector)], dtypes=["float32"], **more
    )


CASES = [
    case("right", double, lambda x: x * 2),
    case("wrong", wrong, lambda x: x * 2),
    case("crash", crash, lambda x: x * 2),
    case("hang", hang, lambda x: x * 2),
    case("illegal", illegal, lambda x: x * 2),
    case("beyond", beyond, lambda x: x * 2),
    case("unknown_option", unknown_option, lambda x: x * 2),
    case("nothing", nothing, lambda x: x * 2),
    KernelCase(
        name="slow",
        operator=slow,
        reference=lambda x: x * 2,
        samples=[Sample(f"{n}", lambda draw, n=n: (draw.normal(n),)) for n in range(100, 112)],
        dtypes=["float32"],
    ),
    case("assembly", reciprocal, lambda x: 1 / x),
    KernelCase(
        name="over_limit",
        operator=over_limit,
        reference=torch.matmul,
        samples=[Sample("64x64x1024", lambda draw: (draw.normal(64, 1024), draw.normal(1024, 64)))],
        dtypes=["float16"],
    ),
]
