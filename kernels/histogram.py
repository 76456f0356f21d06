"""Histogram: counts[b] = the number of elements that are b, for b from 0 to bins - 1.

Each program counts its elements apart, and adds its counts to the common ones by one atomic addition per bin: whole
numbers, so that the order of programs cannot be seen.
"""

import torch
import triton
import triton.language as tl

from portability.kernel import (
    Blocks,
    Cost,
    Draw,
    KernelCase,
    Sample,
    Sweep,
    blocks_for,
    cdiv,
    next_power_of_2,
    powers_of_2,
)
from portability.kernels.checks import check_contiguous, check_dtype

INTEGERS = (torch.int32, torch.int64, torch.int16, torch.int8, torch.uint8)
MOST = 4096  # a program's own counts lie in shared memory


@triton.jit
def histogram_kernel(
    x_ptr, counts_ptr, n_elements, bins, BINS: tl.constexpr, BLOCK_SIZE: tl.constexpr, ROUNDS: tl.constexpr
):  # fmt: skip
    """Each program counts ROUNDS blocks of BLOCK_SIZE neighbours into BINS bins, of which one takes what is no bin."""
    first = tl.program_id(0).to(tl.int64) * BLOCK_SIZE * ROUNDS
    counts = tl.zeros((BINS,), dtype=tl.int32)
    for i in range(ROUNDS):
        offsets = first + i * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
        mask = offsets < n_elements
        x = tl.load(x_ptr + offsets, mask=mask).to(tl.int64)
        x = tl.where(mask & (x >= 0) & (x < bins), x, bins)
        counts += tl.histogram(x.to(tl.int32), BINS)
    b = tl.arange(0, BINS)
    tl.atomic_add(counts_ptr + b, counts, mask=(b < bins) & (counts > 0), sem="relaxed")


def launch_histogram(x, bins, counts, blocks):
    """Write the counts, which are set to zero first."""
    counts.zero_()
    if x.numel():
        grid = (cdiv(x.numel(), blocks["BLOCK_SIZE"] * blocks["ROUNDS"]),)
        histogram_kernel[grid](x, counts, x.numel(), bins, BINS=next_power_of_2(bins + 1), **blocks)


def histogram(x: torch.Tensor, bins: int, blocks: Blocks | None = None) -> torch.Tensor:
    """Return how often each of 0 … bins - 1 occurs in `x`, int32; other elements are left out.

    x: int32, int64, int16, int8 or uint8, any shape, contiguous. 1 ≤ bins ≤ 4096.
    Raises `TypeError` for another dtype, `ValueError` for another layout or number of bins.
    """
    check_dtype("histogram", INTEGERS, x=x)
    check_contiguous("histogram", x=x)
    if not 1 <= bins <= MOST:
        raise ValueError(f"histogram: bins is {bins}; taken is 1 to {MOST}")
    counts = torch.empty(bins, dtype=torch.int32, device=x.device)
    launch_histogram(x, bins, counts, blocks or blocks_for("histogram", x))
    return counts


def histogram_reference(x, bins):
    x = x.long().flatten()
    return torch.bincount(x[(x >= 0) & (x < bins)], minlength=bins).int()


def _operands(bins, *shape, low=0):
    def inputs(d: Draw):
        high = min(bins, torch.iinfo(d.dtype).max)
        return d.integers(*(n(d) if callable(n) else n for n in shape), low=low, high=high + 1), bins

    return inputs


def _far_from_any(d: Draw):
    """Elements that 32 bits do not hold, and whose lower 32 are a bin: on both sides of the bins."""
    return torch.tensor([3, 2**32 + 3, -(2**32) + 3, 4, 2**40], dtype=d.dtype), 5


def _past_a_program(d: Draw) -> int:
    return d.blocks["BLOCK_SIZE"] * d.blocks["ROUNDS"] + 1


CASE = KernelCase(
    name="histogram",
    operator=histogram,
    launch=launch_histogram,
    reference=histogram_reference,
    samples=(
        Sample("0-bins5", _operands(5, 0)),
        Sample("1-bins1", _operands(1, 1)),
        Sample("5-bins5-far", _far_from_any, dtypes=("int64",)),
        Sample("3x777-bins77", _operands(77, 3, 777, low=-9), quick=True),  # some are no bin, on both sides
        Sample("4096-bins64", _operands(64, 4096)),
        Sample("past-a-program-bins300", _operands(300, _past_a_program)),
        Sample("5003-bins3-one", lambda d: (torch.ones(5003, dtype=d.dtype), 3)),  # all programs meet at one bin
        Sample("67108864-bins256", _operands(256, 1 << 26), bench=True, dtypes=("int32", "uint8")),
    ),
    dtypes=("int32", "int64", "int16", "int8", "uint8"),
    torch=lambda x, bins: torch.bincount(x.flatten(), minlength=bins),
    cost=lambda x, _bins, counts: Cost(x.numel() * x.element_size() + counts.numel() * 4),
    sweep=Sweep(powers_of_2(12, 26), lambda d, n: _operands(256, n)(d)),
    blocks=Blocks(BLOCK_SIZE=1024, ROUNDS=8, num_warps=4),
    space={"BLOCK_SIZE": (512, 1024, 2048, 4096), "ROUNDS": (1, 4, 8, 16), "num_warps": (4, 8)},
)
