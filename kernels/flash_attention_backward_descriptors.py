"""The gradients of attention by tensor descriptors: the two kernels of `flash_attention_backward`, one loop each.

What a program holds and what it goes over are fetched by descriptors, also lse and δ, so that a compiler may give the
fetching to warps of its own (SPECIALIZE, as in `flash_attention_descriptors`).
"""

import math

import triton
import triton.language as tl

from portability.kernel import cdiv
from portability.kernels.attention import describable, describe, memory_for_descriptors, rows_of

LOG2_E = tl.constexpr(math.log2(math.e))


@triton.jit
def dk_dv_descriptors_kernel(
    q_ptr, q_rows, stride_q, q_by_batch, q_by_head, q_columns,
    k_ptr, k_rows, stride_k, k_by_batch, k_by_head, k_columns,
    v_ptr, v_rows, stride_v, v_by_batch, v_by_head, v_columns,
    dout_ptr, dout_rows, stride_dout, dout_by_batch, dout_by_head, dout_columns,
    lse_ptr, delta_ptr, dk_ptr, dv_ptr, scale, batches, heads, heads_per_kv, seq_q, seq_k,
    stride_gb, stride_gn, stride_gh, CAUSAL: tl.constexpr, RAGGED: tl.constexpr, PRECISION: tl.constexpr,
    HELD: tl.constexpr, STEP: tl.constexpr, D: tl.constexpr, SPECIALIZE: tl.constexpr,
):  # fmt: skip
    """Each program holds HELD keys of one kv head of one batch, and goes over the queries of all heads that use it.

    RAGGED: seq_q is no multiple of STEP, which it is not below. The last step of a head then begins earlier, so that it
    holds no row of another, and the rows that it has again add nothing.
    """
    tiles = tl.cdiv(seq_k, HELD)
    kv_heads = heads // heads_per_kv
    first_key = tl.program_id(0) % tiles * HELD
    kv_head = tl.program_id(0) // tiles % kv_heads
    batch = tl.program_id(0) // tiles // kv_heads
    queries = describe(q_ptr, q_rows, stride_q, STEP, D)
    douts = describe(dout_ptr, dout_rows, stride_dout, STEP, D)
    lses = tl.make_tensor_descriptor(lse_ptr, [batches * heads * seq_q], [1], [STEP])
    deltas = tl.make_tensor_descriptor(delta_ptr, [batches * heads * seq_q], [1], [STEP])
    k_row, v_row = batch * k_by_batch + kv_head * k_by_head, batch * v_by_batch + kv_head * v_by_head
    k = describe(k_ptr, k_rows, stride_k, HELD, D).load([k_row + first_key, kv_head * k_columns])
    v = describe(v_ptr, v_rows, stride_v, HELD, D).load([v_row + first_key, kv_head * v_columns])
    dk = tl.zeros((HELD, D), tl.float32)
    dv = tl.zeros((HELD, D), tl.float32)

    diagonal = seq_k - seq_q  # row i sees keys up to i + diagonal
    start = 0
    if CAUSAL:  # from the first row that sees a key of these
        start = tl.minimum(tl.maximum(first_key - diagonal, 0), seq_q) // STEP * STEP
    keys = first_key + tl.arange(0, HELD)
    steps = tl.cdiv(seq_q - start, STEP)
    for i in tl.range(0, heads_per_kv * steps, warp_specialize=SPECIALIZE == 1):
        head = kv_head * heads_per_kv + i // steps
        start_m = start + i % steps * STEP
        first_row = tl.minimum(start_m, seq_q - STEP) if RAGGED else start_m
        rows = first_row + tl.arange(0, STEP)
        row_base = (batch * heads + head) * seq_q + first_row
        q = queries.load([batch * q_by_batch + head * q_by_head + first_row, head * q_columns])
        s = tl.dot(k, tl.trans(q), input_precision=PRECISION)  # keys are rows here: P and dS come out transposed
        lse = lses.load([row_base])
        p = tl.exp2(s * (scale * LOG2_E) - (lse * LOG2_E)[None, :])
        if CAUSAL:
            p = tl.where(keys[:, None] <= rows[None, :] + diagonal, p, 0.0)
        if RAGGED:
            p = tl.where(rows[None, :] >= start_m, p, 0.0)
        dout = douts.load([batch * dout_by_batch + head * dout_by_head + first_row, head * dout_columns])
        dv = tl.dot(p.to(dout.dtype), dout, dv, input_precision=PRECISION)
        dp = tl.dot(v, tl.trans(dout), input_precision=PRECISION)
        delta = deltas.load([row_base])  # not before: it would take registers beside lse
        ds = p * (dp - delta[None, :])
        dk = tl.dot(ds.to(q.dtype), q, dk, input_precision=PRECISION)

    offsets = batch.to(tl.int64) * stride_gb + kv_head.to(tl.int64) * stride_gh
    offsets = offsets + keys[:, None].to(tl.int64) * stride_gn + tl.arange(0, D)[None, :]
    tl.store(dk_ptr + offsets, (dk * scale).to(dk_ptr.dtype.element_ty), mask=keys[:, None] < seq_k)
    tl.store(dv_ptr + offsets, dv.to(dv_ptr.dtype.element_ty), mask=keys[:, None] < seq_k)


@triton.jit
def dq_descriptors_kernel(
    q_ptr, q_rows, stride_q, q_by_batch, q_by_head, q_columns,
    k_ptr, k_rows, stride_k, k_by_batch, k_by_head, k_columns,
    v_ptr, v_rows, stride_v, v_by_batch, v_by_head, v_columns,
    dout_ptr, dout_rows, stride_dout, dout_by_batch, dout_by_head, dout_columns,
    lse_ptr, delta_ptr, dq_ptr, scale, batches, heads, heads_per_kv, seq_q, seq_k,
    stride_gb, stride_gm, stride_gh, CAUSAL: tl.constexpr, RAGGED: tl.constexpr, PRECISION: tl.constexpr,
    HELD: tl.constexpr, KEYS: tl.constexpr, D: tl.constexpr, SPECIALIZE: tl.constexpr,
):  # fmt: skip
    """Each program holds HELD queries of one head of one batch, and goes over KEYS keys a step; RAGGED as above."""
    tiles = tl.cdiv(seq_q, HELD)
    first_row = (tiles - 1 - tl.program_id(0) % tiles) * HELD
    head = tl.program_id(0) // tiles % heads
    batch = tl.program_id(0) // tiles // heads
    kv_head = head // heads_per_kv
    keys = describe(k_ptr, k_rows, stride_k, KEYS, D)
    values = describe(v_ptr, v_rows, stride_v, KEYS, D)
    # Rows past the end are of another head, and are not stored.
    q_row, dout_row = batch * q_by_batch + head * q_by_head, batch * dout_by_batch + head * dout_by_head
    row_base = (batch * heads + head) * seq_q
    q = describe(q_ptr, q_rows, stride_q, HELD, D).load([q_row + first_row, head * q_columns])
    dout = describe(dout_ptr, dout_rows, stride_dout, HELD, D).load([dout_row + first_row, head * dout_columns])
    lse = tl.make_tensor_descriptor(lse_ptr, [batches * heads * seq_q], [1], [HELD]).load([row_base + first_row])
    delta = tl.make_tensor_descriptor(delta_ptr, [batches * heads * seq_q], [1], [HELD]).load([row_base + first_row])
    rows = first_row + tl.arange(0, HELD)
    dq = tl.zeros((HELD, D), tl.float32)

    diagonal = seq_k - seq_q
    stop = seq_k
    if CAUSAL:
        stop = tl.maximum(tl.minimum(seq_k, first_row + HELD + diagonal), 0)
    for start_n in tl.range(0, stop, KEYS, warp_specialize=SPECIALIZE == 1):
        first_key = tl.minimum(start_n, seq_k - KEYS) if RAGGED else start_n
        k = keys.load([batch * k_by_batch + kv_head * k_by_head + first_key, kv_head * k_columns])
        s = tl.dot(q, tl.trans(k), input_precision=PRECISION)
        v = values.load([batch * v_by_batch + kv_head * v_by_head + first_key, kv_head * v_columns])
        dp = tl.dot(dout, tl.trans(v), input_precision=PRECISION)
        p = tl.exp2(s * (scale * LOG2_E) - (lse * LOG2_E)[:, None])
        columns = first_key + tl.arange(0, KEYS)[None, :]
        if CAUSAL:
            p = tl.where(columns <= rows[:, None] + diagonal, p, 0.0)
        if RAGGED:
            p = tl.where(columns >= start_n, p, 0.0)
        ds = p * (dp - delta[:, None])
        dq = tl.dot(ds.to(k.dtype), k, dq, input_precision=PRECISION)

    dq_ptrs = dq_ptr + batch.to(tl.int64) * stride_gb + head.to(tl.int64) * stride_gh
    dq_ptrs = dq_ptrs + rows[:, None].to(tl.int64) * stride_gm + tl.arange(0, D)[None, :]
    tl.store(dq_ptrs, (dq * scale).to(dq_ptr.dtype.element_ty), mask=rows[:, None] < seq_q)


def takes(q, k, v, dout, blocks):
    """Return whether the kernels take the operands: a step or more of each, in matrices that descriptors take.

    lse and δ lie in one row, in which tiles begin at multiples of 16 bytes if seq_q is one of 4.
    """
    batches, seq_q, heads, _ = q.shape
    long = seq_q >= blocks["STEP"] and k.shape[1] >= blocks["KEYS"]
    row = seq_q % 4 == 0 and batches * seq_q * heads < 2**31
    return long and row and describable(q, k, v, dout)


def launch_gradients_by_descriptors(dout, q, k, v, lse, delta, causal, scale, dq, dk, dv, blocks):
    """Write the gradients into `dq`, `dk` and `dv`."""
    (batches, seq_q, heads, D), (seq_k, kv_heads) = q.shape, k.shape[1:3]
    matrices = [x for t in (q, k, v, dout) for x in (t, *rows_of(t.shape, t.stride(), t.element_size()))]
    sizes = (scale, batches, heads, heads // kv_heads, seq_q, seq_k)
    given = {name: blocks[name] for name in ("HELD", "SPECIALIZE", "num_warps", "num_stages")}
    given |= {"CAUSAL": causal, "PRECISION": "ieee", "D": D}
    STEP, KEYS = blocks["STEP"], blocks["KEYS"]
    triton.set_allocator(memory_for_descriptors)
    dq_descriptors_kernel[(cdiv(seq_q, blocks["HELD"]) * heads * batches,)](
        *matrices, lse, delta, dq, *sizes, *dq.stride()[:3], KEYS=KEYS, RAGGED=seq_k % KEYS != 0, **given
    )  # fmt: skip
    dk_dv_descriptors_kernel[(cdiv(seq_k, blocks["HELD"]) * kv_heads * batches,)](
        *matrices, lse, delta, dk, dv, *sizes, *dk.stride()[:3], STEP=STEP, RAGGED=seq_q % STEP != 0, **given
    )  # fmt: skip
