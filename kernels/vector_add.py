"""Vector addition: out = x + y. The smallest kernel that has everything: a grid, offsets, a mask.

A kernel is written for one *program*, which works on a block of elements at once; the grid says how many programs there
are, and `program_id` which of them this is. A pointer plus a block of offsets is a block of pointers. What is
`tl.constexpr` is known when the kernel is compiled: shapes of blocks must be, and are powers of two. How many threads
share a program's block is not written anywhere: `num_warps` is an option of the launch.

As in every file here there are three layers: the kernel, a launch that neither allocates nor checks, and the operator
that people call. What comes after is for the harness: inputs to try it with, and what they should give.
"""

import torch
import triton
import triton.language as tl

from portability.kernel import Blocks, Cost, Draw, KernelCase, Sample, Sweep, blocks_for, cdiv, powers_of_2
from portability.kernels.checks import (
    check_contiguous,
    check_device,
    check_dtype,
    check_no_gradient,
    check_shape,
    named,
    once_per_layout,
)

FLOATS = (torch.float32, torch.float16, torch.bfloat16, torch.float64)
DTYPES = (*FLOATS, torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8)


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n_elements, BLOCK_SIZE: tl.constexpr):
    """Each program adds BLOCK_SIZE neighbours; the mask keeps the last one inside the vectors."""
    start = tl.program_id(0).to(tl.int64) * BLOCK_SIZE  # 64 bits: past 2³¹ elements a product of int32 wraps around
    offsets = start + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)


def launch_add(x, y, out, blocks):
    """Add into a given `out`: no allocation and no checks, so that this is what is timed."""
    n = out.numel()
    if n:  # a grid of no programs is an error on some devices
        # kernel[grid](arguments): tensors become pointers; `blocks` holds BLOCK_SIZE and the option num_warps.
        add_kernel[(cdiv(n, blocks["BLOCK_SIZE"]),)](x, y, out, n, **blocks)


def add(x: torch.Tensor, y: torch.Tensor, blocks: Blocks | None = None) -> torch.Tensor:
    """Return x + y, element by element, without broadcasting: `elementwise.add` broadcasts and takes any strides.

    x, y: contiguous tensors of one shape, one dtype of DTYPES and one device.
    Raises `ValueError` for shapes, layouts or devices that do not agree, and where a gradient would be needed, which
    `elementwise.add` has; `TypeError` for dtypes that do not agree.
    """
    check_add(x, y)
    if x.requires_grad or y.requires_grad:
        check_no_gradient("add", x=x, y=y)
    out = torch.empty_like(x)
    launch_add(x, y, out, blocks or blocks_for("vector_add", x))
    return out


@once_per_layout
def check_add(x, y):
    check_device("add", x=x, y=y)
    check_dtype("add", DTYPES, x=x, y=y)
    check_shape("add", y=(y, x.shape))
    check_contiguous("add", x=x, y=y)


def _pair(n):
    return lambda draw: (draw.normal(n), draw.normal(n))


def _around_block(difference):
    def inputs(draw: Draw):
        n = draw.blocks["BLOCK_SIZE"] + difference
        return draw.normal(n), draw.normal(n)

    return inputs


CASE = KernelCase(
    name="vector_add",
    operator=add,
    launch=launch_add,
    reference=torch.add,
    dtypes=tuple(map(named, DTYPES)),
    samples=(
        Sample("0", _pair(0)),
        Sample("1", _pair(1)),
        Sample("257", _pair(257), quick=True),
        Sample("block-minus-1", _around_block(-1)),
        Sample("block", _around_block(0)),
        Sample("block-plus-1", _around_block(1)),
        Sample("4096", _pair(4096)),  # a multiple of 16: the variant with wide loads
        Sample("4096-offset", lambda draw: (draw.offset(draw.normal(4096)), draw.offset(draw.normal(4096), 3))),
        Sample("100003", _pair(100_003)),
        Sample(
            "100003-nan", lambda draw: (draw.special(100_003), draw.normal(100_003)), dtypes=tuple(map(named, FLOATS))
        ),
        Sample("268435456", _pair(1 << 28), bench=True, dtypes=("float32", "float16", "bfloat16")),
    ),
    blocks=Blocks(BLOCK_SIZE=1024, num_warps=4),
    space={"BLOCK_SIZE": (256, 512, 1024, 2048, 4096), "num_warps": (1, 2, 4, 8)},
    cost=lambda *tensors: Cost(bytes=sum(t.nbytes for t in tensors), flops=tensors[0].numel()),
    sweep=Sweep(powers_of_2(12, 28), lambda draw, n: _pair(n)(draw)),
)
