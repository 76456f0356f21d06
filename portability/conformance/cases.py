"""The small kernels that an adapter is tried with. Found only where this module is named among a matrix's kernels."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, name-defined, no-any-return"

import torch
import triton
import triton.language as tl

from portability.backend import FLOATS, INTEGERS
from portability.kernel import Blocks, Cost, KernelCase, Sample, cdiv

FLOAT8 = ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz")
DTYPES = (*FLOATS, *INTEGERS, "uint16", "uint32", "uint64", *FLOAT8)


@triton.jit
def widen_kernel(x_ptr, copy_ptr, wide_ptr, n, BLOCK: tl.constexpr):
    """Copy a block, and store it as float32 too."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    tl.store(copy_ptr + at, x, mask=at < n)
    tl.store(wide_ptr + at, x.to(tl.float32), mask=at < n)


@triton.jit
def square_kernel(x_ptr, out_ptr, SIZE: tl.constexpr):
    """Multiply a square with itself: its operands lie in shared memory."""
    at = tl.arange(0, SIZE)[:, None] * SIZE + tl.arange(0, SIZE)[None, :]
    x = tl.load(x_ptr + at)
    tl.store(out_ptr + at, tl.dot(x, x, out_dtype=tl.float32))


@triton.jit
def spin_kernel(x_ptr, rounds, BLOCK: tl.constexpr):
    """Work for a while: a chain of dependent steps, so that nothing can be left out."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at)
    for _ in range(rounds):
        x = x * 0.999 + 0.001
    tl.store(x_ptr + at, x)


def widen(x: torch.Tensor, blocks: Blocks | None = None) -> tuple[torch.Tensor, torch.Tensor]:
    """Return a copy of x, and x as float32."""
    copy, wide = torch.empty_like(x), torch.empty(x.shape, dtype=torch.float32, device=x.device)
    launch_widen(x, copy, wide, blocks or CASE.blocks)
    return copy, wide


def launch_widen(x, copy, wide, blocks):
    """Launch into given outputs: what is timed."""
    if x.numel():
        widen_kernel[(cdiv(x.numel(), blocks["BLOCK"]),)](x, copy, wide, x.numel(), **blocks)


def square(x: torch.Tensor, blocks: Blocks | None = None) -> torch.Tensor:
    """Return x @ x as float32."""
    out = torch.empty(x.shape, dtype=torch.float32, device=x.device)
    square_kernel[(1,)](x, out, **(blocks or Blocks(SIZE=x.shape[0])))
    return out


CASE = KernelCase(
    name="conformance_widen",
    operator=widen,
    launch=launch_widen,
    reference=lambda x: (x, x.double()),
    chain=lambda x: (x, x.to(torch.float32)),
    samples=(
        Sample("257", lambda draw: (draw.normal(257),), quick=True),
        Sample("0", lambda draw: (draw.normal(0),)),
        Sample("1048576", lambda draw: (draw.normal(1 << 20),), bench=True),
        Sample("67108864", lambda draw: (draw.normal(1 << 26),), bench=True),
    ),
    dtypes=DTYPES,
    blocks=Blocks(BLOCK=256, num_warps=4),
    cost=lambda *tensors: Cost(bytes=sum(t.nbytes for t in tensors)),
)
SQUARE = KernelCase(
    name="conformance_square",
    operator=square,
    reference=lambda x: x.double() @ x.double(),
    samples=(Sample("64", lambda draw: (draw.normal(64, 64),)),),
    dtypes=("float16",),
    blocks=Blocks(SIZE=64, num_warps=4),
)
CASES = [SQUARE]  # `spin_kernel` is launched by itself
