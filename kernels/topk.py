"""Top k: the k largest of each row, largest first, with their places. Of equal ones the first counts.

Each value is made into a 64-bit key that sorts as (value, first place first), so that sorting keys sorts both. The best
k so far meet the next block of the row, and the best k of the two go on:

    best = topk(best ∪ topk(keys of the block))
"""

import torch
import triton
import triton.language as tl

from portability.kernel import Blocks, Cost, Draw, KernelCase, Sample, Sweep, blocks_for, next_power_of_2, powers_of_2
from portability.kernels.checks import FLOATS, check_dtype, check_no_gradient, rows_of

MOST = 128  # a sorting network is unrolled: it grows with the square of log k


@triton.jit
def key_of(x, place):
    """Return a key that is larger for a larger x, and at equal x for an earlier place. NaN is above all."""
    x = tl.where(x == 0.0, 0.0, x.to(tl.float32))  # -0 and 0 are equal
    bits = x.to(tl.int32, bitcast=True)
    rising = bits ^ ((bits >> 31) & 0x7FFFFFFF)  # negative floats fall as their bits rise
    rising = tl.where(x != x, 0x7FFFFFFF, rising)  # noqa: PLR0124 - true of NaN alone
    return (rising.to(tl.int64) << 32) | (0x7FFFFFFF - place).to(tl.int64)


@triton.jit
def topk_kernel(
    x_ptr, values_ptr, places_ptr, n_cols, k, stride_xm, stride_xn, K: tl.constexpr, BLOCK_N: tl.constexpr
):  # fmt: skip
    """Each program takes one row, BLOCK_N at a time; K is k rounded up to a power of two, at least 2."""
    row = tl.program_id(0).to(tl.int64)
    LEAST: tl.constexpr = -0x8000000000000000
    best = tl.full((K,), LEAST, dtype=tl.int64)
    for start in range(0, n_cols, BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N)
        x = tl.load(x_ptr + row * stride_xm + cols.to(tl.int64) * stride_xn, mask=cols < n_cols)
        keys = tl.where(cols < n_cols, key_of(x, cols), LEAST)
        both = tl.join(best, tl.topk(keys, K))
        best = tl.topk(tl.reshape(both, (2 * K,)), K)
    ranks = tl.arange(0, K)
    places = 0x7FFFFFFF - (best & 0x7FFFFFFF)
    values = tl.load(x_ptr + row * stride_xm + places * stride_xn, mask=ranks < k)
    tl.store(values_ptr + row * k + ranks, values, mask=ranks < k)
    tl.store(places_ptr + row * k + ranks, places, mask=ranks < k)


def launch_topk(x, k, values, places, blocks):
    """Write the k largest of the rows of `x` (M, N) and their places; both (M, k), contiguous."""
    M, N = x.shape
    K = max(2, next_power_of_2(k))
    blocks = blocks | {"BLOCK_N": max(K, blocks["BLOCK_N"])}
    if values.numel():
        topk_kernel[(M,)](x, values, places, N, k, *x.stride(), K=K, **blocks)


def topk(x: torch.Tensor, k: int, blocks: Blocks | None = None) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the k largest of each row (..., k), largest first, and their places, int64.

    x: (..., N), float32, float16 or bfloat16, any strides that view as rows. Equal values come in the order of their
    places (torch leaves that open), NaN before all. 0 ≤ k ≤ N and k ≤ 128.
    Raises `TypeError` for another dtype, `ValueError` for another layout or k.
    """
    check_dtype("topk", FLOATS, x=x)
    check_no_gradient("topk", x=x)
    rows = rows_of("topk", "x", x)
    if not 0 <= k <= min(rows.shape[1], MOST):
        raise ValueError(f"topk: k is {k}; taken is 0 to {min(rows.shape[1], MOST)} for rows of {rows.shape[1]}")
    values = torch.empty((*x.shape[:-1], k), dtype=x.dtype, device=x.device)
    places = torch.empty(values.shape, dtype=torch.int64, device=x.device)
    flat = (rows.shape[0], k)
    launch_topk(rows, k, values.view(flat), places.view(flat), blocks or blocks_for("topk", x))
    return values, places


def topk_reference(x, k):
    order = torch.sort(x, dim=-1, descending=True, stable=True)
    return order.values[..., :k], order.indices[..., :k]


def _operands(k, *shape):
    return lambda d: (d.normal(*(n(d) if callable(n) else n for n in shape)), k)


def _past_a_block(d: Draw) -> int:
    return d.blocks["BLOCK_N"] + 1


def _equal(d: Draw):
    """Few distinct values, so that places decide."""
    return d.integers(4, 300, low=-2, high=3).to(d.dtype), 20


def _signs(d: Draw):
    """Zeros of both signs are equal, and so are NaN of both: places decide."""
    nan = torch.tensor([0x7FC00000, -0x400000, 0x7FC00001], dtype=torch.int32).view(torch.float32)  # the second is -NaN
    row = torch.cat((torch.tensor([-0.0, 0.0, -0.0, 1.0, -1.0]), nan, torch.tensor([torch.inf, 0.0])))
    return row.to(d.dtype)[None], 10


def _last(d: Draw):
    """The largest lie at the end of a row of several blocks, all below zero."""
    n = 2 * d.blocks["BLOCK_N"] + 3
    return (-torch.arange(n, 0, -1).repeat(2, 1) / 1024).to(d.dtype), 3


CASE = KernelCase(
    name="topk",
    operator=topk,
    launch=launch_topk,
    reference=topk_reference,
    samples=(
        Sample("0x5-k2", _operands(2, 0, 5)),
        Sample("1x1-k1", _operands(1, 1, 1)),
        Sample("5x77-k7", _operands(7, 5, 77), quick=True),
        Sample("3xblock-plus-1-k16", _operands(16, 3, _past_a_block)),
        Sample("2x3x40-k40", _operands(40, 2, 3, 40)),
        Sample("4x300-k20-equal", _equal),
        Sample("2xlong-k3-last", _last),
        Sample("1x10-k10-signs", _signs),
        Sample("2x32-k13-special", lambda d: (d.special(64).view(2, 32), 13)),
        Sample("6x48-k5-transposed", lambda d: (d.transposed(d.normal(6, 48)), 5)),
        Sample("4096x32000-k64", _operands(64, 4096, 32000), bench=True),
    ),
    dtypes=("float32", "float16", "bfloat16"),
    cost=lambda x, _k, values, places: Cost(
        x.numel() * x.element_size() + values.numel() * values.element_size() + places.numel() * 8
    ),
    sweep=Sweep(powers_of_2(8, 16), lambda d, n: _operands(64, 4096, n)(d), "columns of 4096 rows, 64 taken"),
    blocks=Blocks(BLOCK_N=256, num_warps=4),
    space={"BLOCK_N": (128, 256, 512, 1024), "num_warps": (1, 2, 4, 8)},
)
