"""Grouped matrix product: the rows of x lie in groups, and each group has a weight of its own (mixture of experts).

    out[i] = x[i] @ w[g]   for ends[g - 1] ≤ i < ends[g]

The ends stay on the device. So the grid has as many tiles as the rows could need at most, M // BLOCK_M and one more for
each group, and every program finds its own tile from the ends.
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
from portability.kernels.checks import (
    FLOATS,
    check_contiguous,
    check_device,
    check_dtype,
    check_no_gradient,
    check_shape,
    named,
)


@triton.jit
def find_tile(ends_ptr, tile, n_groups, M, GROUPS: tl.constexpr, BLOCK_M: tl.constexpr):
    """Return the group that the `tile`-th tile of rows is of, and its rows, start to end (empty past the last tile).

    Rows past the last end are one group more, number n_groups, which has no weight.
    """
    groups = tl.arange(0, GROUPS)
    ends = tl.load(ends_ptr + groups, mask=groups < n_groups, other=0)
    starts = tl.load(ends_ptr + tl.maximum(groups - 1, 0), mask=(groups > 0) & (groups <= n_groups), other=0)
    ends = tl.where(groups < n_groups, ends, M)
    starts = tl.where(groups <= n_groups, starts, M)
    tiles = (ends - starts + BLOCK_M - 1) // BLOCK_M
    tiles_to_here = tl.cumsum(tiles, axis=0)
    group = tl.sum((tiles_to_here <= tile).to(tl.int32), axis=0)
    # A block in registers has no index: what belongs to one group is picked out by a mask and a sum.
    mine = groups == group
    first_tile = tl.sum(tl.where(mine, tiles_to_here - tiles, 0), axis=0)
    end = tl.sum(tl.where(mine, ends, 0), axis=0)
    start = tl.sum(tl.where(mine, starts, 0), axis=0) + (tile - first_tile) * BLOCK_M
    return group, start, end


@triton.jit
def grouped_matmul_kernel(
    x_ptr, w_ptr, ends_ptr, out_ptr, n_groups, M, N, K,
    stride_xm, stride_xk, stride_wg, stride_wk, stride_wn, stride_om,
    GROUPS: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """Each program computes one tile of BLOCK_M rows of one group and BLOCK_N columns."""
    group, start, end = find_tile(ends_ptr, tl.program_id(0), n_groups, M, GROUPS, BLOCK_M)
    rows = (start + tl.arange(0, BLOCK_M)).to(tl.int64)
    cols = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    k = tl.arange(0, BLOCK_K)
    x_ptrs = x_ptr + rows[:, None] * stride_xm + k[None, :] * stride_xk
    w_ptrs = w_ptr + group.to(tl.int64) * stride_wg + k[:, None] * stride_wk + cols[None, :] * stride_wn

    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    depth = tl.where(group < n_groups, K, 0)  # rows of no group are 0
    for k0 in range(0, depth, BLOCK_K):
        x = tl.load(x_ptrs, mask=(rows < end)[:, None] & (k0 + k < K)[None, :], other=0.0)
        w = tl.load(w_ptrs, mask=(k0 + k < K)[:, None] & (cols < N)[None, :], other=0.0)
        acc = tl.dot(x, w, acc, input_precision="ieee")
        x_ptrs += BLOCK_K * stride_xk
        w_ptrs += BLOCK_K * stride_wk
    out_ptrs = out_ptr + rows[:, None] * stride_om + cols[None, :]
    tl.store(out_ptrs, acc.to(out_ptr.dtype.element_ty), mask=(rows < end)[:, None] & (cols < N)[None, :])


def launch_grouped_matmul(x, w, ends, out, blocks):
    """Write every row of `out` (M, N), rows contiguous."""
    M, K = x.shape
    G, _, N = w.shape
    if out.numel():
        grid = (M // blocks["BLOCK_M"] + G + 1, cdiv(N, blocks["BLOCK_N"]))
        grouped_matmul_kernel[grid](
            x, w, ends, out, G, M, N, K, *x.stride(), *w.stride(), out.stride(0),
            GROUPS=next_power_of_2(G + 1), **blocks,
        )  # fmt: skip


def grouped_matmul(x: torch.Tensor, w: torch.Tensor, ends: torch.Tensor, blocks: Blocks | None = None) -> torch.Tensor:
    """Return x[i] @ w[group of i], (M, N), contiguous; summed in float32, float32 operands in full precision.

    x     (M, K), float32, float16 or bfloat16, any strides
    w     (G, K, N), the same dtype, any strides (so `weight.transpose(1, 2)` of (G, N, K) is taken as it lies)
    ends  (G,) int32, contiguous: one past each group's last row, rising, at most M; equal ends are an empty group, and
          rows past the last end give 0. Values are not checked: they stay on the device

    Raises `TypeError` for another dtype, `ValueError` for other shapes, layouts or devices, and for a gradient.
    """
    check_device("grouped_matmul", x=x, w=w, ends=ends)
    check_dtype("grouped_matmul", FLOATS, x=x, w=w)
    check_dtype("grouped_matmul", (torch.int32,), ends=ends)
    check_shape("grouped_matmul", x=(x, ("M", "K")))
    check_shape("grouped_matmul", w=(w, ("G", x.shape[1], "N")))
    check_shape("grouped_matmul", ends=(ends, w.shape[:1]))
    check_contiguous("grouped_matmul", ends=ends)
    check_no_gradient("grouped_matmul", x=x, w=w)
    out = torch.empty((x.shape[0], w.shape[2]), dtype=x.dtype, device=x.device)
    launch_grouped_matmul(x, w, ends, out, blocks or blocks_for("grouped_matmul", x))
    return out


def grouped_matmul_reference(x, w, ends):
    out = x.new_zeros(x.shape[0], w.shape[2])
    start = 0
    for g, end in enumerate(ends.tolist()):
        out[start:end] = x[start:end] @ w[g]
        start = end
    return out


def _operands(sizes, K, N, rest=0, layout=lambda d, x, w: (x, w)):
    def inputs(d: Draw):
        ends = torch.tensor(sizes(d) if callable(sizes) else sizes).cumsum(0).to(torch.int32)
        x, w = d.normal(int(ends[-1]) + rest, K), d.normal(len(ends), K, N, scale=K**-0.5)
        return *layout(d, x, w), ends

    return inputs


def _around_a_block(d: Draw):
    m = d.blocks["BLOCK_M"]
    return m - 1, m, m + 1


SAMPLES = (
    Sample("none-of-3", _operands((0, 0, 0), 16, 16)),
    Sample("1-of-1-1x1", _operands((1,), 1, 1)),
    Sample("1-of-1-16x16-rest1", _operands((1,), 16, 16, rest=1)),  # no program of the grid is left over
    Sample("5.0.33.1-of-4-65x77-rest3", _operands((5, 0, 33, 1), 65, 77, rest=3), quick=True),
    Sample("64.32-of-2-64x64", _operands((64, 32), 64, 64)),
    Sample("around-a-block-of-3-33x40", _operands(_around_a_block, 33, 40)),
    Sample(
        "9.20-of-2-48x40-transposed",
        _operands((9, 20), 48, 40, layout=lambda d, x, w: (d.transposed(x), d.transposed(w))),
    ),
    Sample("16x1024-4096x1536", _operands((1024,) * 16, 4096, 1536), bench=True, dtypes=("float16", "bfloat16")),
)


def _cost(x, w, _ends, out):
    moved = (x.numel() + w.numel() + out.numel()) * x.element_size()
    return Cost(moved, flops=2 * out.numel() * x.shape[1], unit=named(x.dtype))


CASE = KernelCase(
    name="grouped_matmul",
    operator=grouped_matmul,
    launch=launch_grouped_matmul,
    reference=grouped_matmul_reference,
    samples=SAMPLES,
    dtypes=("float32", "float16", "bfloat16"),
    cost=_cost,
    sweep=Sweep(powers_of_2(3, 11), lambda d, n: _operands((n,) * 16, 4096, 1536)(d), "rows of each of 16 groups"),
    blocks=Blocks(BLOCK_M=64, BLOCK_N=64, BLOCK_K=32, num_warps=4, num_stages=2),
    space={
        "BLOCK_M": (16, 32, 64, 128),
        "BLOCK_N": (64, 128, 256),
        "BLOCK_K": (32, 64),
        "num_warps": (4, 8),
        "num_stages": (2, 3, 4),
    },
)
