"""Attention of one query per sequence over latents that all heads share, by several programs a sequence.

Four launches: queries are folded into the latent's space, parts of a sequence are attended over, what the parts found
is combined, and the sums of latents are projected to the heads' values. `mla_decode` has the formulas.
"""

import torch
import triton
import triton.language as tl

from portability.kernel import cdiv, next_power_of_2
from portability.kernels.attention import memory_for_descriptors

PROJECTION_ROWS, PROJECTION_COLS = 64, 64  # tiles of the two projections, whose work is small
LOG2_E = tl.constexpr(1.4426950408889634)  # exp(x) = exp2(x · log2 e): scores and their sums are in powers of 2
PARTS = 4  # of a split sequence that are combined at a time
LONG = 512  # elements of a latent, for which the tables' blocks are; longer ones take smaller blocks
LEAST_SPLIT = 256  # tokens: a part of fewer costs more than it takes from the others


@triton.jit
def project_kernel(
    x_ptr, w_ptr, out_ptr, batch, K, N,
    stride_xb, stride_xh, stride_wh, stride_wk, stride_wn, stride_ob, stride_oh,
    BLOCK_B: tl.constexpr, BLOCK_K: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """out[b, h] = x[b, h] @ w[h]: each program takes one head, BLOCK_B sequences and BLOCK_N of the result's elements.

    It serves the query, q_c = W_UKᵀ q, and the output, whose rows are the sums of latents.
    """
    head = tl.program_id(0).to(tl.int64)
    b = tl.program_id(1) * BLOCK_B + tl.arange(0, BLOCK_B)
    n = tl.program_id(2) * BLOCK_N + tl.arange(0, BLOCK_N)
    in_batch, in_n = (b < batch)[:, None], (n < N)[None, :]
    x_rows = x_ptr + b.to(tl.int64)[:, None] * stride_xb + head * stride_xh
    w_cols = w_ptr + head * stride_wh + n[None, :] * stride_wn
    out = tl.zeros((BLOCK_B, BLOCK_N), dtype=tl.float32)
    for k0 in range(0, K, BLOCK_K):
        k = k0 + tl.arange(0, BLOCK_K)
        x = tl.load(x_rows + k[None, :], mask=in_batch & (k < K)[None, :], other=0.0)
        w = tl.load(w_cols + k[:, None] * stride_wk, mask=(k < K)[:, None] & in_n, other=0.0)
        out = tl.dot(x, w, out, input_precision="ieee")
    out_ptrs = out_ptr + b.to(tl.int64)[:, None] * stride_ob + head * stride_oh + n[None, :]
    tl.store(out_ptrs, out.to(out_ptr.dtype.element_ty), mask=in_batch & in_n)


@triton.jit
def split_kernel(
    qc_ptr, qr_ptr, cache_ptr, lengths_ptr, part_ptr, lse_ptr, scale, n_heads, rank, rope_dim,
    stride_qrb, stride_qrh, stride_cb, stride_ct,
    BLOCK_R: tl.constexpr, BLOCK_P: tl.constexpr, SPLIT: tl.constexpr,
    BLOCK_H: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, DESCRIPTORS: tl.constexpr,
):  # fmt: skip
    """Each program attends over SPLIT tokens of one sequence for BLOCK_H heads; a token's latent is key and value.

    As a key, the latent is read BLOCK_K elements at a time: whole, it would fill some targets' shared memory with its
    query. Where BLOCK_K holds all of it, it is read once, as key and value. DESCRIPTORS: tokens come by descriptors.
    """
    batch = tl.program_id(0).to(tl.int64)
    heads = tl.program_id(1) * BLOCK_H + tl.arange(0, BLOCK_H)
    split, n_splits = tl.program_id(2), tl.num_programs(2)
    start = split * SPLIT
    end = tl.minimum(start + SPLIT, tl.load(lengths_ptr + batch))
    if start >= end:  # past this sequence: `combine_kernel` does not look here
        return

    r, p, k = tl.arange(0, BLOCK_R), tl.arange(0, BLOCK_P), tl.arange(0, BLOCK_K)
    is_head, in_rank, in_rope = (heads < n_heads)[:, None], (r < rank)[None, :], (p < rope_dim)[None, :]
    query = (batch * n_heads + heads)[:, None]
    qr_ptrs = qr_ptr + batch * stride_qrb + heads[:, None] * stride_qrh + p[None, :]
    q_r = tl.load(qr_ptrs, mask=is_head & in_rope, other=0.0)
    if BLOCK_K >= BLOCK_R:
        q_c = tl.load(qc_ptr + query * rank + r[None, :], mask=is_head & in_rank, other=0.0)
    sequence = cache_ptr + batch * stride_cb
    if DESCRIPTORS:  # what lies past the end is 0
        latents = tl.make_tensor_descriptor(sequence, [end, rank], [stride_ct, 1], [BLOCK_N, BLOCK_R])
        rotated = tl.make_tensor_descriptor(sequence + rank, [end, rope_dim], [stride_ct, 1], [BLOCK_N, BLOCK_P])

    m = tl.full((BLOCK_H,), -float("inf"), dtype=tl.float32)
    l = tl.zeros((BLOCK_H, BLOCK_N), dtype=tl.float32)  # summed over a block's tokens at the end, not in each block
    acc = tl.zeros((BLOCK_H, BLOCK_R), dtype=tl.float32)
    for n in range(start, end, BLOCK_N):
        t = n + tl.arange(0, BLOCK_N)
        token = tl.minimum(t, end - 1)  # past the end stands the last token again, with a weight of 0
        rows = sequence + token.to(tl.int64)[:, None] * stride_ct
        k_r = rotated.load([n, 0]) if DESCRIPTORS else tl.load(rows + rank + p[None, :], mask=in_rope, other=0.0)
        scores = tl.dot(q_r, tl.trans(k_r), input_precision="ieee")
        if BLOCK_K < BLOCK_R:
            for k0 in range(0, rank, BLOCK_K):
                in_piece = (k0 + k < rank)[None, :]
                q_piece = tl.load(qc_ptr + query * rank + k0 + k[None, :], mask=is_head & in_piece, other=0.0)
                c_piece = tl.load(rows + k0 + k[None, :], mask=in_piece, other=0.0)
                scores = tl.dot(q_piece, tl.trans(c_piece), scores, input_precision="ieee")
        c = latents.load([n, 0]) if DESCRIPTORS else tl.load(rows + r[None, :], mask=in_rank, other=0.0)
        if BLOCK_K >= BLOCK_R:
            of_rope = scores
            # It always holds. Triton gives all warps rows of a product that goes into another, so that with 64 heads
            # each of two groups of four warps would make all scores. It does not look past a branch.
            if n < end:
                scores = tl.dot(q_c, tl.trans(c), input_precision="ieee") + of_rope
        scores = tl.where((t < end)[None, :], scores * (scale * LOG2_E), -float("inf"))
        m_new = tl.maximum(m, tl.max(scores, axis=1))
        alpha = tl.exp2(m - m_new)
        weights = tl.exp2(scores - m_new[:, None])
        l = l * alpha[:, None] + weights
        acc = tl.dot(weights.to(c.dtype), c, acc * alpha[:, None], input_precision="ieee")
        m = m_new

    l = tl.sum(l, axis=1)
    parts = (query * n_splits + split) * rank
    tl.store(part_ptr + parts + r[None, :], acc * (1.0 / l)[:, None], mask=is_head & in_rank)
    tl.store(lse_ptr + (batch * n_heads + heads) * n_splits + split, m + tl.log2(l), mask=heads < n_heads)


@triton.jit
def combine_kernel(
    part_ptr, lse_ptr, lengths_ptr, out_ptr, n_heads, n_splits, rank,
    SPLIT: tl.constexpr, BLOCK_S: tl.constexpr, BLOCK_R: tl.constexpr,
):  # fmt: skip
    """out = Σ_s exp2(lse_s) part_s / Σ_s exp2(lse_s) of one head of one sequence, BLOCK_S parts at a time."""
    query = tl.program_id(0).to(tl.int64)
    used = tl.cdiv(tl.load(lengths_ptr + query // n_heads), SPLIT)
    r = tl.arange(0, BLOCK_R)
    in_rank = (r < rank)[None, :]
    m = -float("inf")
    l = 0.0
    latent = tl.zeros((BLOCK_R,), dtype=tl.float32)
    for s0 in range(0, used, BLOCK_S):
        s = s0 + tl.arange(0, BLOCK_S)
        lse = tl.load(lse_ptr + query * n_splits + s, mask=s < used, other=-float("inf"))
        part_ptrs = part_ptr + (query * n_splits + s)[:, None] * rank + r[None, :]
        part = tl.load(part_ptrs, mask=(s < used)[:, None] & in_rank, other=0.0)
        m_new = tl.maximum(m, tl.max(lse, axis=0))
        share = tl.exp2(lse - m_new)
        alpha = tl.exp2(m - m_new)
        l = l * alpha + tl.sum(share, axis=0)
        latent = latent * alpha + tl.sum(share[:, None] * part, axis=0)
        m = m_new
    latent = latent / tl.where(used > 0, l, 1.0)  # a sequence of no tokens gives 0
    tl.store(out_ptr + query * rank + r, latent.to(out_ptr.dtype.element_ty), mask=r < rank)


def launch_mla_decode(q, q_rope, cache, w_uk, w_uv, lengths, scale, out, blocks):
    """Write the attention of each query; folded queries, parts and sums of latents are scratch memory."""
    B, H, D = q.shape
    P, R = q_rope.shape[2], w_uk.shape[2]
    if not out.numel():
        return
    BLOCK_R, constants = fit_latent(H, R, blocks)
    heads = cdiv(H, constants["BLOCK_H"])
    SPLIT = tokens_of_a_part(cache.shape[1], B * heads, blocks)
    n_splits = max(1, cdiv(cache.shape[1], SPLIT))
    DESCRIPTORS = blocks["DESCRIPTORS"] == 1 and describable(cache, R)
    if DESCRIPTORS:
        triton.set_allocator(memory_for_descriptors)
    latent = torch.empty((B, H, R), dtype=q.dtype, device=q.device)
    part = torch.empty((B, H, n_splits, R), dtype=torch.float32, device=q.device)
    lse = torch.empty((B, H, n_splits), dtype=torch.float32, device=q.device)
    _project(q, w_uk, latent, blocks)
    split_kernel[(B, heads, n_splits)](
        latent, q_rope, cache, lengths, part, lse, (D + P) ** -0.5 if scale is None else scale, H, R, P,
        *q_rope.stride()[:2], *cache.stride()[:2], BLOCK_R=BLOCK_R, BLOCK_P=tile(P), SPLIT=SPLIT,
        DESCRIPTORS=DESCRIPTORS, **constants,
    )  # fmt: skip
    combine_kernel[(B * H,)](
        part, lse, lengths, latent, H, n_splits, R,
        SPLIT=SPLIT, BLOCK_S=min(PARTS, next_power_of_2(n_splits)), BLOCK_R=next_power_of_2(R), num_warps=4,
    )  # fmt: skip
    _project(latent, w_uv, out, blocks)


def fit_latent(heads, rank, blocks):
    """Return BLOCK_R and the constants and options for as many heads and latents of `rank` elements."""
    BLOCK_R = tile(rank)
    wider = max(1, BLOCK_R // LONG)
    return BLOCK_R, {
        "BLOCK_H": min(max(16, blocks["BLOCK_H"] // wider), tile(heads)),
        "BLOCK_N": max(16, blocks["BLOCK_N"] // wider),
        "BLOCK_K": min(blocks["BLOCK_K"], BLOCK_R),
        "num_warps": blocks["num_warps"],
        "num_stages": blocks["num_stages"],
    }


def describable(cache, rank):
    """Return whether descriptors take latents and rotated keys: there are both, and rows at multiples of 16 bytes."""
    stride_b, stride_t, _ = cache.stride()
    starts = (stride_b * cache.element_size(), stride_t * cache.element_size(), rank * cache.element_size())
    rows = stride_t >= cache.shape[2] > rank
    return rows and not any(start % 16 for start in (cache.data_ptr(), *starts))


def tokens_of_a_part(tokens, programs, blocks):
    """Return SPLIT, halved while parts of it make fewer programs than PROGRAMS: `programs` for each."""
    SPLIT = blocks["SPLIT"]
    while programs * cdiv(tokens, SPLIT) < blocks["PROGRAMS"] and SPLIT > LEAST_SPLIT:
        SPLIT //= 2
    return SPLIT


def _project(x, w, out, blocks):
    """Write x (B, H, K) times w (H, K, N) into `out`, whose last dimension is contiguous."""
    (B, H, K), N = x.shape, w.shape[2]
    BLOCK_B = min(PROJECTION_ROWS, tile(B))
    project_kernel[(H, cdiv(B, BLOCK_B), cdiv(N, PROJECTION_COLS))](
        x, w, out, B, K, N, *x.stride()[:2], *w.stride(), *out.stride()[:2],
        BLOCK_B=BLOCK_B, BLOCK_K=min(PROJECTION_COLS, tile(K)), BLOCK_N=PROJECTION_COLS,
        num_warps=4, num_stages=blocks["num_stages"],
    )  # fmt: skip


def tile(n):
    """Return `n` as a power of two that a matrix unit takes."""
    return max(16, next_power_of_2(n))
