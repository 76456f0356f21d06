"""Matrix product with few tiles and a long K: c = a @ b, with K split among programs, so that all have work.

Each part of K is summed by itself, in float32, and the parts are added in a second launch, in one order: the result
comes out the same each time, which atomic additions would not give.
"""

import functools

import torch
import triton
import triton.language as tl

from portability.kernel import cdiv, next_power_of_2
from portability.kernels.operations import activate


@triton.jit
def matmul_split_kernel(
    a_ptr, b_ptr, part_ptr, M, N, K, share, stride_am, stride_ak, stride_bk, stride_bn,
    PRECISION: tl.constexpr, ACCUMULATOR: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """Each program sums one BLOCK_M × BLOCK_N tile over one of the parts of K, of `share` each."""
    tiles_m = tl.cdiv(M, BLOCK_M)
    rows = ((tl.program_id(0) % tiles_m) * BLOCK_M + tl.arange(0, BLOCK_M)).to(tl.int64)[:, None]
    columns = ((tl.program_id(0) // tiles_m) * BLOCK_N + tl.arange(0, BLOCK_N)).to(tl.int64)[None, :]
    first = tl.program_id(1).to(tl.int64) * share
    last = tl.minimum(first + share, K)
    k = first + tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + rows * stride_am + k[None, :] * stride_ak
    b_ptrs = b_ptr + k[:, None] * stride_bk + columns * stride_bn
    step = tl.full((), BLOCK_K, tl.int64)

    accumulator = tl.zeros((BLOCK_M, BLOCK_N), ACCUMULATOR)
    for start in range(first, last, BLOCK_K):
        left = last - start
        a = tl.load(a_ptrs, mask=(rows < M) & (tl.arange(0, BLOCK_K)[None, :] < left), other=0.0)
        b = tl.load(b_ptrs, mask=(tl.arange(0, BLOCK_K)[:, None] < left) & (columns < N), other=0.0)
        accumulator = tl.dot(a, b, accumulator, input_precision=PRECISION, out_dtype=ACCUMULATOR)
        a_ptrs += step * stride_ak
        b_ptrs += step * stride_bk

    part_ptrs = part_ptr + (tl.program_id(1).to(tl.int64) * M + rows) * N + columns
    tl.store(part_ptrs, accumulator, mask=(rows < M) & (columns < N))


@triton.jit
def add_parts_kernel(
    part_ptr, bias_ptr, c_ptr, N, size, parts, stride_cm, stride_cn,
    ACTIVATION: tl.constexpr, PARTS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """c = activation(Σ parts + bias), for BLOCK elements of a row of c; `size` is M · N, and PARTS a power of two.

    All parts are loaded before the first is added: in a loop each would wait for the one before.
    """
    blocks = tl.cdiv(N, BLOCK)
    row = (tl.program_id(0) // blocks).to(tl.int64)
    column = tl.program_id(0) % blocks * BLOCK + tl.arange(0, BLOCK)
    part = tl.arange(0, PARTS).to(tl.int64)[:, None]
    part_ptrs = part_ptr + part * size + row * N + column
    total = tl.sum(tl.load(part_ptrs, mask=(part < parts) & (column < N), other=0.0), axis=0)
    if bias_ptr is not None:
        total += tl.load(bias_ptr + column, mask=column < N, other=0.0).to(total.dtype)
    c = activate(total, ACTIVATION).to(c_ptr.dtype.element_ty)
    tl.store(c_ptr + row * stride_cm + column.to(tl.int64) * stride_cn, c, mask=column < N)


def add_parts(parts, bias, c, activation=""):
    """Write activation(Σ parts + bias) into `c` of (M, N), for `parts` of (P, M, N)."""
    P, M, N = parts.shape
    add_parts_kernel[(M * cdiv(N, 128),)](
        parts, bias, c, N, c.numel(), P, *c.stride(),
        ACTIVATION=activation, PARTS=next_power_of_2(P), BLOCK=128, num_warps=1,
    )  # fmt: skip


def shares(K, tiles, blocks):
    """Return how much of K a part takes, and how many parts: as many as make PROGRAMS programs, SPLIT at the most."""
    steps = max(1, cdiv(K, blocks["BLOCK_K"]))  # a sum of nothing is 0, and is written
    parts = max(1, min(blocks["SPLIT"], blocks["PROGRAMS"] // tiles, steps))
    share = cdiv(steps, parts)
    return share * blocks["BLOCK_K"], cdiv(steps, share)


def tile_options(blocks):
    """Return the blocks that are a tile's, without those that choose a kernel and its grid."""
    return {name: blocks[name] for name in ("BLOCK_M", "BLOCK_N", "BLOCK_K", "num_warps", "num_stages")}


@functools.lru_cache
def for_rows(blocks, M):
    """Return the blocks with tiles no taller than M rows need."""
    return blocks | {"BLOCK_M": min(blocks["BLOCK_M"], max(16, next_power_of_2(M)))}


def launch_matmul_split(a, b, bias, c, blocks, given, share, parts):
    """Write activation(a @ b + bias) into `c`, from `parts` of `share` of K each, which are scratch memory.

    `given` are the kernel's other constants.
    """
    (M, K), N = a.shape, b.shape[1]
    tiles = cdiv(M, blocks["BLOCK_M"]) * cdiv(N, blocks["BLOCK_N"])
    accumulator = given["ACCUMULATOR"]
    dtype = {tl.int32: torch.int32, tl.float64: torch.float64}.get(accumulator, torch.float32)
    part = torch.empty((parts, M, N), dtype=dtype, device=a.device)
    matmul_split_kernel[(tiles, parts)](
        a, b, part, M, N, K, share, *a.stride(), *b.stride(),
        PRECISION=given["PRECISION"], ACCUMULATOR=accumulator, **tile_options(blocks),
    )  # fmt: skip
    add_parts(part, bias, c, given["ACTIVATION"])
