"""The gradients of attention by tensor descriptors: the two kernels of `flash_attention_backward`.

What a program holds and what it goes over are fetched by descriptors (see `flash_attention_descriptors`).
"""

import math

import triton
import triton.language as tl

from portability.kernel import cdiv
from portability.kernels.attention import describable, describe, memory_for_descriptors, rows_of

LOG2_E = tl.constexpr(math.log2(math.e))


@triton.jit
def hold(ptr, n_rows, stride, row, column, inside, BLOCK: tl.constexpr, D: tl.constexpr):
    """Return a tile of BLOCK rows of one head, with zeros where they are not `inside` it.

    What comes of a select, and is no load, is held in registers, from which a product takes it on sm_90: that leaves
    shared memory to what a program goes over.
    """
    return tl.where(inside[:, None], describe(ptr, n_rows, stride, BLOCK, D).load([row, column]), 0.0)


@triton.jit
def add_queries_described(
    dk, dv, k, v, queries, douts, lse_ptr, delta_ptr, q_row, q_column, dout_row, dout_column, keys, diagonal,
    start, stop, seq_q, scale, CAUSAL: tl.constexpr, RAGGED: tl.constexpr, PRECISION: tl.constexpr, STEP: tl.constexpr,
):  # fmt: skip
    """Return dk and dv with the queries from `start` to `stop` added. CAUSAL: not all of them see every key."""
    for start_m in range(start, stop, STEP):
        first_row = tl.minimum(start_m, seq_q - STEP) if RAGGED else start_m
        rows = first_row + tl.arange(0, STEP)
        q = queries.load([q_row + first_row, q_column])
        s = tl.dot(k, tl.trans(q), input_precision=PRECISION)  # keys are rows here: P and dS come out transposed
        dout = douts.load([dout_row + first_row, dout_column])
        dp = tl.dot(v, tl.trans(dout), input_precision=PRECISION)
        lse = tl.load(lse_ptr + rows)
        p = tl.exp2(s * (scale * LOG2_E) - (lse * LOG2_E)[None, :])
        if CAUSAL:
            p = tl.where(keys[:, None] <= rows[None, :] + diagonal, p, 0.0)
        if RAGGED:
            p = tl.where(rows[None, :] >= start_m, p, 0.0)
        delta = tl.load(delta_ptr + rows)
        dv = tl.dot(p.to(dout.dtype), dout, dv, input_precision=PRECISION)
        ds = p * (dp - delta[None, :])
        dk = tl.dot(ds.to(q.dtype), q, dk, input_precision=PRECISION)
    return dk, dv


@triton.jit
def dk_dv_descriptors_kernel(
    q_ptr, q_rows, stride_q, q_by_batch, q_by_head, q_columns,
    k_ptr, k_rows, stride_k, k_by_batch, k_by_head, k_columns,
    v_ptr, v_rows, stride_v, v_by_batch, v_by_head, v_columns,
    dout_ptr, dout_rows, stride_dout, dout_by_batch, dout_by_head, dout_columns,
    lse_ptr, delta_ptr, dk_ptr, dv_ptr, scale, heads, heads_per_kv, seq_q, seq_k,
    stride_gb, stride_gn, stride_gh, CAUSAL: tl.constexpr, RAGGED: tl.constexpr, PRECISION: tl.constexpr,
    HELD: tl.constexpr, STEP: tl.constexpr, D: tl.constexpr,
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
    keys = first_key + tl.arange(0, HELD)
    k_row, v_row = batch * k_by_batch + kv_head * k_by_head, batch * v_by_batch + kv_head * v_by_head
    k = describe(k_ptr, k_rows, stride_k, HELD, D).load([k_row + first_key, kv_head * k_columns])
    v = describe(v_ptr, v_rows, stride_v, HELD, D).load([v_row + first_key, kv_head * v_columns])
    dk = tl.zeros((HELD, D), tl.float32)
    dv = tl.zeros((HELD, D), tl.float32)

    diagonal = seq_k - seq_q  # row i sees keys up to i + diagonal
    start = 0
    unmasked = 0
    if CAUSAL:  # from the first row that sees a key of these, and from the first that sees all of them
        start = tl.minimum(tl.maximum(first_key - diagonal, 0), seq_q) // STEP * STEP
        unmasked = tl.maximum(first_key + HELD - 1 - diagonal, 0)
        unmasked = tl.minimum(tl.cdiv(unmasked, STEP) * STEP, tl.cdiv(seq_q, STEP) * STEP)
    # Counted from kv_head on: where a head has keys of its own, a loop of one round would be none, and what the
    # products of one loop leave to the next would make them wait for each other (Triton 3.6, sm_90).
    for head in range(kv_head * heads_per_kv, (kv_head + 1) * heads_per_kv):
        q_row, dout_row = batch * q_by_batch + head * q_by_head, batch * dout_by_batch + head * dout_by_head
        row_base = (batch * heads + head).to(tl.int64) * seq_q
        if CAUSAL:
            dk, dv = add_queries_described(
                dk, dv, k, v, queries, douts, lse_ptr + row_base, delta_ptr + row_base, q_row, head * q_columns,
                dout_row, head * dout_columns, keys, diagonal, start, unmasked, seq_q, scale,
                True, RAGGED, PRECISION, STEP,
            )  # fmt: skip
        dk, dv = add_queries_described(
            dk, dv, k, v, queries, douts, lse_ptr + row_base, delta_ptr + row_base, q_row, head * q_columns,
            dout_row, head * dout_columns, keys, diagonal, unmasked, seq_q, seq_q, scale,
            False, RAGGED, PRECISION, STEP,
        )  # fmt: skip

    offsets = batch.to(tl.int64) * stride_gb + kv_head.to(tl.int64) * stride_gh
    offsets = offsets + keys[:, None].to(tl.int64) * stride_gn + tl.arange(0, D)[None, :]
    tl.store(dk_ptr + offsets, (dk * scale).to(dk_ptr.dtype.element_ty), mask=keys[:, None] < seq_k)
    tl.store(dv_ptr + offsets, dv.to(dv_ptr.dtype.element_ty), mask=keys[:, None] < seq_k)


@triton.jit
def add_keys_described(
    dq, q, dout, lse, delta, keys, values, k_row, k_column, v_row, v_column, rows, diagonal, start, stop, seq_k, scale,
    CAUSAL: tl.constexpr, RAGGED: tl.constexpr, PRECISION: tl.constexpr, STEP: tl.constexpr,
):  # fmt: skip
    """Return dq with the keys from `start` to `stop` added; all rows see them unless CAUSAL or RAGGED."""
    for start_n in range(start, stop, STEP):
        first_key = tl.minimum(start_n, seq_k - STEP) if RAGGED else start_n
        k = keys.load([k_row + first_key, k_column])
        s = tl.dot(q, tl.trans(k), input_precision=PRECISION)
        v = values.load([v_row + first_key, v_column])
        dp = tl.dot(dout, tl.trans(v), input_precision=PRECISION)
        p = tl.exp2(s * (scale * LOG2_E) - (lse * LOG2_E)[:, None])
        columns = first_key + tl.arange(0, STEP)[None, :]
        if CAUSAL:
            p = tl.where(columns <= rows[:, None] + diagonal, p, 0.0)
        if RAGGED:
            p = tl.where(columns >= start_n, p, 0.0)
        ds = p * (dp - delta[:, None])
        dq = tl.dot(ds.to(k.dtype), k, dq, input_precision=PRECISION)
    return dq


@triton.jit
def dq_descriptors_kernel(
    q_ptr, q_rows, stride_q, q_by_batch, q_by_head, q_columns,
    k_ptr, k_rows, stride_k, k_by_batch, k_by_head, k_columns,
    v_ptr, v_rows, stride_v, v_by_batch, v_by_head, v_columns,
    dout_ptr, dout_rows, stride_dout, dout_by_batch, dout_by_head, dout_columns,
    out_ptr, out_rows, stride_out, out_by_batch, out_by_head, out_columns,
    lse_ptr, delta_ptr, dq_ptr, scale, heads, heads_per_kv, seq_q, seq_k,
    stride_gb, stride_gm, stride_gh, CAUSAL: tl.constexpr, RAGGED: tl.constexpr, PRECISION: tl.constexpr,
    HELD: tl.constexpr, STEP: tl.constexpr, D: tl.constexpr,
):  # fmt: skip
    """Each program holds HELD queries of one head of one batch, and goes over the keys. Stores their δ also.

    RAGGED: seq_k is no multiple of STEP, as above.
    """
    tiles = tl.cdiv(seq_q, HELD)
    first_row = (tiles - 1 - tl.program_id(0) % tiles) * HELD
    head = tl.program_id(0) // tiles % heads
    batch = tl.program_id(0) // tiles // heads
    kv_head = head // heads_per_kv
    rows = first_row + tl.arange(0, HELD)
    inside = rows < seq_q
    q_row, dout_row = batch * q_by_batch + head * q_by_head, batch * dout_by_batch + head * dout_by_head
    out_row = batch * out_by_batch + head * out_by_head
    q = hold(q_ptr, q_rows, stride_q, q_row + first_row, head * q_columns, inside, HELD, D)
    dout = hold(dout_ptr, dout_rows, stride_dout, dout_row + first_row, head * dout_columns, inside, HELD, D)
    out = hold(out_ptr, out_rows, stride_out, out_row + first_row, head * out_columns, inside, HELD, D)
    row_base = (batch * heads + head).to(tl.int64) * seq_q
    lse = tl.load(lse_ptr + row_base + rows, mask=inside, other=0.0)
    delta = tl.sum(out.to(tl.float32) * dout.to(tl.float32), axis=1)
    tl.store(delta_ptr + row_base + rows, delta, mask=inside)

    keys = describe(k_ptr, k_rows, stride_k, STEP, D)
    values = describe(v_ptr, v_rows, stride_v, STEP, D)
    k_row, k_column = batch * k_by_batch + kv_head * k_by_head, kv_head * k_columns
    v_row, v_column = batch * v_by_batch + kv_head * v_by_head, kv_head * v_columns
    diagonal = seq_k - seq_q
    stop = seq_k
    unmasked = seq_k
    if CAUSAL:
        stop = tl.maximum(tl.minimum(seq_k, first_row + HELD + diagonal), 0)
        unmasked = tl.maximum(tl.minimum(seq_k, first_row + diagonal + 1), 0)
    unmasked = unmasked // STEP * STEP
    dq = tl.zeros((HELD, D), tl.float32)
    dq = add_keys_described(
        dq, q, dout, lse, delta, keys, values, k_row, k_column, v_row, v_column, rows, diagonal, 0, unmasked, seq_k,
        scale, False, False, PRECISION, STEP,
    )  # fmt: skip
    # Also where it has no round: what one loop alone takes, Triton would load from shared memory in each of its rounds.
    dq = add_keys_described(
        dq, q, dout, lse, delta, keys, values, k_row, k_column, v_row, v_column, rows, diagonal, unmasked, stop, seq_k,
        scale, CAUSAL, RAGGED, PRECISION, STEP,
    )  # fmt: skip

    dq_ptrs = dq_ptr + batch.to(tl.int64) * stride_gb + head.to(tl.int64) * stride_gh
    dq_ptrs = dq_ptrs + rows[:, None].to(tl.int64) * stride_gm + tl.arange(0, D)[None, :]
    tl.store(dq_ptrs, (dq * scale).to(dq_ptr.dtype.element_ty), mask=inside[:, None])


def takes(q, k, v, dout, out, blocks):
    """Return whether the kernels take the operands: a step or more of each, in matrices that descriptors take."""
    return min(q.shape[1], k.shape[1]) >= blocks["STEP"] and describable(q, k, v, dout, out)


def launch_dq_by_descriptors(dout, q, k, v, out, lse, delta, causal, scale, dq, blocks):
    """Write the gradient of q into `dq`, and δ of each row into `delta`, as large as `lse`."""
    batches, seq_q, heads, _ = q.shape
    dq_descriptors_kernel[(cdiv(seq_q, blocks["HELD"]) * heads * batches,)](
        *_matrices(q, k, v, dout, out), lse, delta, dq, *_sizes(q, k, scale), *dq.stride()[:3],
        RAGGED=k.shape[1] % blocks["STEP"] != 0, **_given(q, causal, blocks) | {"num_stages": blocks["DQ_STAGES"]},
    )  # fmt: skip


def launch_dk_dv_by_descriptors(dout, q, k, v, lse, delta, causal, scale, dk, dv, blocks):
    """Write the gradients of k and v into `dk` and `dv`."""
    batches, seq_k, kv_heads, _ = k.shape
    dk_dv_descriptors_kernel[(cdiv(seq_k, blocks["HELD"]) * kv_heads * batches,)](
        *_matrices(q, k, v, dout), lse, delta, dk, dv, *_sizes(q, k, scale), *dk.stride()[:3],
        RAGGED=q.shape[1] % blocks["STEP"] != 0, **_given(q, causal, blocks),
    )  # fmt: skip


def _matrices(*tensors):
    """Return what describes the matrices; descriptors are made in memory that Triton asks for."""
    triton.set_allocator(memory_for_descriptors)
    return [x for t in tensors for x in (t, *rows_of(t.shape, t.stride(), t.element_size()))]


def _sizes(q, k, scale):
    return scale, q.shape[2], q.shape[2] // k.shape[2], q.shape[1], k.shape[1]


def _given(q, causal, blocks):
    given = {name: size for name, size in blocks.items() if name != "DQ_STAGES"}
    return {"CAUSAL": causal, "PRECISION": "ieee", "D": q.shape[-1], **given}
