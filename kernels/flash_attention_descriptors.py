"""Attention by as many programs as there are compute units, which fetch tiles by tensor descriptors.

As `flash_attention`. SPECIALIZE: all keys of a tile are in one loop, so that a compiler may give the fetching to warps
of its own (NVIDIA, sm_90, num_warps = 4, to which Triton then adds two groups of four that take half of the queries
each). A descriptor names the matrix in which all heads of all batches lie, so that it is made once a program;
`rows_of` says of which operands there is one.
"""

import math

import triton
import triton.language as tl

from portability.kernel import blocks_for, cdiv
from portability.kernels.attention import (
    add_sums,
    describable,
    describe,
    memory_for_descriptors,
    online_softmax,
    rows_of,
)

LN_2 = tl.constexpr(math.log(2))
NARROW = 64  # heads of so many elements, or fewer, have blocks of their own


@triton.jit
def head_and_tile(index, heads, tiles, programs):
    """Return which head and which of its tiles is `index`, of those that a program takes every `programs`-th of.

    Late queries see the most keys: a program takes a tile from the end of a head, and then the one as far from the
    head's beginning, so that all get as much work. Of an odd number of tiles those in the middle come last.
    """
    pairs = tiles // 2 * heads
    round_of_two = index // (2 * programs) * programs
    size = tl.minimum(programs, tl.maximum(pairs - round_of_two, 1))
    place = index - 2 * round_of_two
    pair = round_of_two + place % size
    from_end = pair % tl.maximum(tiles // 2, 1)
    head = tl.where(index < 2 * pairs, pair // tl.maximum(tiles // 2, 1), index - 2 * pairs)
    tile = tl.where(place < size, tiles - 1 - from_end, from_end)
    return head, tl.where(index < 2 * pairs, tile, tiles // 2)


@triton.jit
def attend_described(
    acc, l, m, q, keys, values, k_row, k_column, v_row, v_column, rows, diagonal, start, stop, seq_k, scale,
    CAUSAL: tl.constexpr, RAGGED: tl.constexpr, PRECISION: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    """Return acc, l and m with the keys from `start` to `stop` added; all rows see them unless CAUSAL or RAGGED."""
    for start_n in range(start, stop, BLOCK_N):
        first_key = tl.minimum(start_n, seq_k - BLOCK_N) if RAGGED else start_n
        k = keys.load([k_row + first_key, k_column])
        s = tl.dot(q, tl.trans(k), input_precision=PRECISION)
        columns = first_key + tl.arange(0, BLOCK_N)[None, :]
        if CAUSAL:
            s = tl.where(columns <= rows[:, None] + diagonal, s, float("-inf"))
        if RAGGED:
            s = tl.where(columns >= start_n, s, float("-inf"))
        p, alpha, m = online_softmax(s, m, scale, CAUSAL or RAGGED)
        l = add_sums(l, p, alpha, BLOCK_M, BLOCK_N, LANES)
        v = values.load([v_row + first_key, v_column])
        acc = tl.dot(p.to(v.dtype), v, acc * alpha[:, None], input_precision=PRECISION)
    return acc, l, m


@triton.jit
def flash_attention_descriptors_kernel(
    q_ptr, q_rows, stride_q, q_by_batch, q_by_head, q_columns,
    k_ptr, k_rows, stride_k, k_by_batch, k_by_head, k_columns,
    v_ptr, v_rows, stride_v, v_by_batch, v_by_head, v_columns,
    out_ptr, lse_ptr, scale, batches, heads, heads_per_kv, seq_q, seq_k, stride_ob, stride_om, stride_oh,
    CAUSAL: tl.constexpr, RAGGED: tl.constexpr, PRECISION: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, D: tl.constexpr, LANES: tl.constexpr, SPECIALIZE: tl.constexpr,
    HOLD: tl.constexpr,
):  # fmt: skip
    """Each program takes every num_programs-th tile of BLOCK_M queries of one head of one batch.

    `scale` includes log2 e. RAGGED: seq_k is no multiple of BLOCK_N, which it is not below. The last block of keys then
    begins earlier, so that it holds no row that is not this head's, and those that it has again are masked.
    """
    queries = describe(q_ptr, q_rows, stride_q, BLOCK_M, D)
    keys = describe(k_ptr, k_rows, stride_k, BLOCK_N, D)
    values = describe(v_ptr, v_rows, stride_v, BLOCK_N, D)
    tiles = tl.cdiv(seq_q, BLOCK_M)
    diagonal = seq_k - seq_q  # row i sees keys up to i + diagonal: the last row sees the last key
    for index in tl.range(
        tl.program_id(0), tiles * heads * batches, tl.num_programs(0), warp_specialize=SPECIALIZE == 1
    ):
        batch_head, tile = head_and_tile(index, heads * batches, tiles, tl.num_programs(0))
        batch, head = batch_head // heads, batch_head % heads
        kv_head = head // heads_per_kv
        first_row = tile * BLOCK_M
        rows = first_row + tl.arange(0, BLOCK_M)
        stop = seq_k
        if CAUSAL:
            stop = tl.maximum(tl.minimum(seq_k, first_row + BLOCK_M + diagonal), 0)

        q = queries.load([batch * q_by_batch + head * q_by_head + first_row, head * q_columns])
        if HOLD == 1:  # what comes of a select, and is no load, is taken from registers in both loops (sm_90)
            q = tl.where(rows[:, None] < seq_q, q, 0.0)
        k_row, k_column = batch * k_by_batch + kv_head * k_by_head, kv_head * k_columns
        v_row, v_column = batch * v_by_batch + kv_head * v_by_head, kv_head * v_columns
        acc = tl.zeros((BLOCK_M, D), tl.float32)
        l = tl.zeros((BLOCK_M,) if LANES == 1 else (BLOCK_M, LANES), tl.float32)
        m = tl.full((BLOCK_M,), float("-inf"), tl.float32)
        edge = 0
        if SPECIALIZE == 0:  # keys before the edge are seen by every row, in whole blocks; warps specialise in one loop
            edge = seq_k
            if CAUSAL:
                edge = tl.maximum(tl.minimum(seq_k, first_row + diagonal + 1), 0)
            edge = edge // BLOCK_N * BLOCK_N
            acc, l, m = attend_described(
                acc, l, m, q, keys, values, k_row, k_column, v_row, v_column, rows, diagonal, 0, edge, seq_k, scale,
                False, False, PRECISION, BLOCK_M, BLOCK_N, LANES,
            )  # fmt: skip
        if SPECIALIZE == 1 or CAUSAL or RAGGED:
            acc, l, m = attend_described(
                acc, l, m, q, keys, values, k_row, k_column, v_row, v_column, rows, diagonal, edge, stop, seq_k, scale,
                CAUSAL, RAGGED, PRECISION, BLOCK_M, BLOCK_N, LANES,
            )  # fmt: skip

        if LANES > 1:
            l = tl.sum(l, axis=1)
        out = acc / tl.where(l == 0.0, 1.0, l)[:, None]  # a row that saw no key: output 0, log-sum-exp -inf
        out_ptrs = out_ptr + batch.to(tl.int64) * stride_ob + head.to(tl.int64) * stride_oh
        out_ptrs = out_ptrs + rows[:, None].to(tl.int64) * stride_om + tl.arange(0, D)[None, :]
        tl.store(out_ptrs, out.to(out_ptr.dtype.element_ty), mask=rows[:, None] < seq_q)
        if lse_ptr is not None:
            lse = (m + tl.log2(l)) * LN_2  # back from powers of 2 to those of e
            tl.store(lse_ptr + batch_head.to(tl.int64) * seq_q + rows, lse, mask=rows < seq_q)


def blocks_of_heads(q, causal):
    """Return the blocks for such heads: narrow ones leave room for more programs, causal ones ask for few masks."""
    name = "flash_attention_descriptors"
    return blocks_for(f"{name}_narrow" if q.shape[-1] <= NARROW else f"{name}_causal" if causal else name, q)


def takes(q, k, v, blocks):
    """Return whether the kernel takes the operands: in matrices that descriptors take, with a block of keys or more."""
    return k.shape[1] >= blocks["BLOCK_N"] and describable(q, k, v)


def launch_flash_attention_descriptors(q, k, v, causal, scale, out, lse, blocks):
    """Write the output into `out` and the log-sum-exp into `lse` unless that is None."""
    (batches, seq_q, heads, D), (seq_k, kv_heads) = q.shape, k.shape[1:3]
    tiles = cdiv(seq_q, blocks["BLOCK_M"]) * heads * batches
    matrices = [x for t in (q, k, v) for x in (t, *rows_of(t.shape, t.stride(), t.element_size()))]
    sizes = (scale / LN_2.value, batches, heads, heads // kv_heads, seq_q, seq_k)
    given = {name: size for name, size in blocks.items() if name != "PROGRAMS"}
    triton.set_allocator(memory_for_descriptors)
    flash_attention_descriptors_kernel[(min(tiles, blocks["PROGRAMS"]),)](
        *matrices, out, lse, *sizes, *out.stride()[:3],
        CAUSAL=causal, RAGGED=seq_k % blocks["BLOCK_N"] != 0, PRECISION="ieee", D=D, **given,
    )  # fmt: skip
