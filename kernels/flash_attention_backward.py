"""The gradients of attention. With P = exp(scale · q kᵀ - lse), made again block by block:

    δ  = Σ dout · out over a row
    dS = P ∘ (dout vᵀ - δ)
    dv = Pᵀ dout,  dk = scale · dSᵀ q,  dq = scale · dS k

One kernel holds keys and goes over the queries, the other holds queries and goes over the keys (Dao, FlashAttention-2,
2023), so that nothing is added from two programs and the result comes out the same each time.
"""

import math

import torch
import triton
import triton.language as tl

from portability.kernel import Blocks, Cost, Draw, KernelCase, Sample, Sweep, blocks_for, cdiv, powers_of_2
from portability.kernels.attention import (
    attention_of_head,
    check_attention,
    fit_head,
    heads_first,
    load_rows,
    load_tile,
    qkv,
    row_pointers,
)
from portability.kernels.checks import FLOATS, check_contiguous, check_device, check_dtype, check_shape, named
from portability.kernels.flash_attention_backward_descriptors import (
    launch_dk_dv_by_descriptors,
    launch_dq_by_descriptors,
    takes,
)

LOG2_E = tl.constexpr(math.log2(math.e))


@triton.jit
def load_of_rows(ptr, rows, n_rows, RAGGED: tl.constexpr):
    """Return one number a row. A query past the end has dout and δ of 0, so that it adds nothing."""
    return tl.load(ptr + rows, mask=rows < n_rows, other=0.0) if RAGGED else tl.load(ptr + rows)


@triton.jit
def add_queries(
    dk, dv, k, v, q_ptr, dout_ptr, lse_ptr, delta_ptr, stride_qm, stride_dm, first_key, diagonal, start, stop, seq_q,
    scale, MASKED: tl.constexpr, RAGGED: tl.constexpr, PRECISION: tl.constexpr,
    HELD: tl.constexpr, STEP: tl.constexpr, D: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """Return dk and dv with the queries from `start` to `stop` added. MASKED: not all of them see every key."""
    keys = first_key + tl.arange(0, HELD)[:, None]
    q_ptrs = row_pointers(q_ptr, start, stride_qm, STEP, BLOCK_D)
    dout_ptrs = row_pointers(dout_ptr, start, stride_dm, STEP, BLOCK_D)
    for start_m in range(start, stop, STEP):
        rows = start_m + tl.arange(0, STEP)
        q = load_tile(q_ptrs, seq_q - start_m, RAGGED, STEP, D, BLOCK_D)
        dout = load_tile(dout_ptrs, seq_q - start_m, RAGGED, STEP, D, BLOCK_D)
        lse = load_of_rows(lse_ptr, rows, seq_q, RAGGED)
        delta = load_of_rows(delta_ptr, rows, seq_q, RAGGED)
        s = tl.dot(k, tl.trans(q), input_precision=PRECISION)  # keys are rows here: P and dS come out transposed
        dp = tl.dot(v, tl.trans(dout), input_precision=PRECISION)
        p = tl.exp2(s * (scale * LOG2_E) - (lse * LOG2_E)[None, :])
        if MASKED:
            p = tl.where(keys <= rows[None, :] + diagonal, p, 0.0)
        dv = tl.dot(p.to(dout.dtype), dout, dv, input_precision=PRECISION)
        ds = p * (dp - delta[None, :])
        dk = tl.dot(ds.to(q.dtype), q, dk, input_precision=PRECISION)
        q_ptrs += tl.cast(STEP, tl.int64) * stride_qm
        dout_ptrs += tl.cast(STEP, tl.int64) * stride_dm
    return dk, dv


@triton.jit
def dk_dv_kernel(
    q_ptr, k_ptr, v_ptr, dout_ptr, lse_ptr, delta_ptr, dk_ptr, dv_ptr, scale, heads, heads_per_kv, seq_q, seq_k,
    stride_qb, stride_qm, stride_qh, stride_kb, stride_kn, stride_kh, stride_vb, stride_vn, stride_vh,
    stride_db, stride_dm, stride_dh, stride_dkb, stride_dkn, stride_dkh,
    CAUSAL: tl.constexpr, RAGGED: tl.constexpr, PRECISION: tl.constexpr,
    HELD: tl.constexpr, STEP: tl.constexpr, D: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """Each program holds HELD keys of one kv head of one batch, and goes over the queries of all heads that use it.

    RAGGED: seq_q is no multiple of STEP.
    """
    tiles = tl.cdiv(seq_k, HELD)
    kv_heads = heads // heads_per_kv
    first_key = tl.program_id(0) % tiles * HELD
    kv_head = (tl.program_id(0) // tiles % kv_heads).to(tl.int64)
    batch = (tl.program_id(0) // tiles // kv_heads).to(tl.int64)
    k = load_rows(k_ptr + batch * stride_kb + kv_head * stride_kh, first_key, stride_kn, seq_k, HELD, D, BLOCK_D)
    v = load_rows(v_ptr + batch * stride_vb + kv_head * stride_vh, first_key, stride_vn, seq_k, HELD, D, BLOCK_D)
    dk = tl.zeros((HELD, BLOCK_D), tl.float32)
    dv = tl.zeros((HELD, BLOCK_D), tl.float32)

    diagonal = seq_k - seq_q  # row i sees keys up to i + diagonal
    start = 0
    unmasked = 0
    if CAUSAL:  # from the first row that sees a key of these, and from the first that sees all of them
        start = tl.minimum(tl.maximum(first_key - diagonal, 0), seq_q) // STEP * STEP
        unmasked = tl.maximum(first_key + HELD - 1 - diagonal, 0)
        unmasked = tl.minimum(tl.cdiv(unmasked, STEP) * STEP, tl.cdiv(seq_q, STEP) * STEP)
    for head in range(kv_head * heads_per_kv, (kv_head + 1) * heads_per_kv):
        row_base = (batch * heads + head) * seq_q
        q_base = q_ptr + batch * stride_qb + head * stride_qh
        dout_base = dout_ptr + batch * stride_db + head * stride_dh
        if CAUSAL:
            dk, dv = add_queries(
                dk, dv, k, v, q_base, dout_base, lse_ptr + row_base, delta_ptr + row_base, stride_qm, stride_dm,
                first_key, diagonal, start, unmasked, seq_q, scale, True, RAGGED, PRECISION, HELD, STEP, D, BLOCK_D,
            )  # fmt: skip
        dk, dv = add_queries(
            dk, dv, k, v, q_base, dout_base, lse_ptr + row_base, delta_ptr + row_base, stride_qm, stride_dm,
            first_key, diagonal, unmasked, seq_q, seq_q, scale, False, RAGGED, PRECISION, HELD, STEP, D, BLOCK_D,
        )  # fmt: skip

    keys = first_key + tl.arange(0, HELD)[:, None]
    d = tl.arange(0, BLOCK_D)[None, :]
    offsets = batch * stride_dkb + kv_head * stride_dkh + keys.to(tl.int64) * stride_dkn + d
    mask = (keys < seq_k) & (d < D)
    tl.store(dk_ptr + offsets, (dk * scale).to(dk_ptr.dtype.element_ty), mask=mask)
    tl.store(dv_ptr + offsets, dv.to(dv_ptr.dtype.element_ty), mask=mask)


@triton.jit
def add_keys(
    dq, q, dout, lse, delta, k_ptr, v_ptr, stride_kn, stride_vn, first_row, diagonal, start, stop, seq_k, scale,
    MASKED: tl.constexpr, CAUSAL: tl.constexpr, PRECISION: tl.constexpr,
    HELD: tl.constexpr, STEP: tl.constexpr, D: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """Return dq with the keys from `start` to `stop` added. MASKED: not every row sees all of them."""
    rows = first_row + tl.arange(0, HELD)[:, None]
    k_ptrs = row_pointers(k_ptr, start, stride_kn, STEP, BLOCK_D)
    v_ptrs = row_pointers(v_ptr, start, stride_vn, STEP, BLOCK_D)
    for start_n in range(start, stop, STEP):
        k = load_tile(k_ptrs, seq_k - start_n, MASKED, STEP, D, BLOCK_D)
        v = load_tile(v_ptrs, seq_k - start_n, MASKED, STEP, D, BLOCK_D)
        s = tl.dot(q, tl.trans(k), input_precision=PRECISION)
        p = tl.exp2(s * (scale * LOG2_E) - (lse * LOG2_E)[:, None])
        if MASKED:
            columns = start_n + tl.arange(0, STEP)[None, :]
            visible = columns < seq_k
            if CAUSAL:
                visible &= columns <= rows + diagonal
            p = tl.where(visible, p, 0.0)
        dp = tl.dot(dout, tl.trans(v), input_precision=PRECISION)
        ds = p * (dp - delta[:, None])
        dq = tl.dot(ds.to(k.dtype), k, dq, input_precision=PRECISION)
        k_ptrs += tl.cast(STEP, tl.int64) * stride_kn
        v_ptrs += tl.cast(STEP, tl.int64) * stride_vn
    return dq


@triton.jit
def dq_kernel(
    q_ptr, k_ptr, v_ptr, dout_ptr, out_ptr, lse_ptr, delta_ptr, dq_ptr, scale, heads, heads_per_kv, seq_q, seq_k,
    stride_qb, stride_qm, stride_qh, stride_kb, stride_kn, stride_kh, stride_vb, stride_vn, stride_vh,
    stride_db, stride_dm, stride_dh, stride_ob, stride_om, stride_oh, stride_dqb, stride_dqm, stride_dqh,
    CAUSAL: tl.constexpr, PRECISION: tl.constexpr,
    HELD: tl.constexpr, STEP: tl.constexpr, D: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """Each program holds HELD queries of one head of one batch, and goes over the keys. Stores their δ also."""
    tiles = tl.cdiv(seq_q, HELD)
    first_row = (tiles - 1 - tl.program_id(0) % tiles) * HELD
    head = (tl.program_id(0) // tiles % heads).to(tl.int64)
    batch = (tl.program_id(0) // tiles // heads).to(tl.int64)
    kv_head = head // heads_per_kv
    k_base = k_ptr + batch * stride_kb + kv_head * stride_kh
    v_base = v_ptr + batch * stride_vb + kv_head * stride_vh
    q = load_rows(q_ptr + batch * stride_qb + head * stride_qh, first_row, stride_qm, seq_q, HELD, D, BLOCK_D)
    dout = load_rows(dout_ptr + batch * stride_db + head * stride_dh, first_row, stride_dm, seq_q, HELD, D, BLOCK_D)
    rows = first_row + tl.arange(0, HELD)
    row_base = (batch * heads + head) * seq_q
    lse = tl.load(lse_ptr + row_base + rows, mask=rows < seq_q, other=0.0)
    out = load_rows(out_ptr + batch * stride_ob + head * stride_oh, first_row, stride_om, seq_q, HELD, D, BLOCK_D)
    delta = tl.sum(out.to(tl.float32) * dout.to(tl.float32), axis=1)
    tl.store(delta_ptr + row_base + rows, delta, mask=rows < seq_q)

    diagonal = seq_k - seq_q
    stop = seq_k
    unmasked = seq_k
    if CAUSAL:
        stop = tl.maximum(tl.minimum(seq_k, first_row + HELD + diagonal), 0)
        unmasked = tl.maximum(tl.minimum(seq_k, first_row + diagonal + 1), 0)
    unmasked = unmasked // STEP * STEP
    dq = tl.zeros((HELD, BLOCK_D), tl.float32)
    dq = add_keys(
        dq, q, dout, lse, delta, k_base, v_base, stride_kn, stride_vn, first_row, diagonal, 0, unmasked, seq_k, scale,
        False, CAUSAL, PRECISION, HELD, STEP, D, BLOCK_D,
    )  # fmt: skip
    dq = add_keys(
        dq, q, dout, lse, delta, k_base, v_base, stride_kn, stride_vn, first_row, diagonal, unmasked, stop, seq_k,
        scale, True, CAUSAL, PRECISION, HELD, STEP, D, BLOCK_D,
    )  # fmt: skip

    d = tl.arange(0, BLOCK_D)[None, :]
    dq_ptrs = dq_ptr + batch * stride_dqb + head * stride_dqh + rows[:, None].to(tl.int64) * stride_dqm + d
    tl.store(dq_ptrs, (dq * scale).to(dq_ptr.dtype.element_ty), mask=(rows[:, None] < seq_q) & (d < D))


def launch_flash_attention_backward(dout, q, k, v, out, lse, causal, scale, dq, dk, dv, blocks):
    """Write the gradients into `dq`, `dk` and `dv`; allocates δ, as large as `lse`, which dq's kernel makes."""
    batch, seq_q, heads, D = q.shape
    seq_k, kv_heads = k.shape[1:3]
    described = blocks_for("flash_attention_backward_descriptors", q)
    dq_described, dk_dv_described = (0 < blocks[name] <= D for name in ("DQ_DESCRIPTORS", "DESCRIPTORS"))
    if (dq_described or dk_dv_described) and not takes(q, k, v, dout, out, described):
        dq_described = dk_dv_described = False
    blocks = fit_head(D, q.element_size(), blocks, ("HELD", "STEP"))
    sizes = (scale, heads, heads // max(1, kv_heads), seq_q, seq_k)
    strides = [s for t in (q, k, v, dout) for s in t.stride()[:3]]
    given = {"CAUSAL": causal, "PRECISION": "ieee", **blocks}
    delta = torch.empty_like(lse)
    if dq_described:
        launch_dq_by_descriptors(dout, q, k, v, out, lse, delta, causal, scale, dq, described)
    elif q.numel():
        operands = (q, k, v, dout, out, lse, delta, dq, *sizes, *strides, *out.stride()[:3], *dq.stride()[:3])
        dq_kernel[(cdiv(seq_q, blocks["HELD"]) * heads * batch,)](*operands, **given)
    if dk_dv_described:
        launch_dk_dv_by_descriptors(dout, q, k, v, lse, delta, causal, scale, dk, dv, described)
    elif k.numel():
        operands = (q, k, v, dout, lse, delta, dk, dv, *sizes, *strides, *dk.stride()[:3])
        grid = (cdiv(seq_k, blocks["HELD"]) * kv_heads * batch,)
        dk_dv_kernel[grid](*operands, RAGGED=seq_q % blocks["STEP"] != 0, **given)


def launch_flash_attention_backward_descriptors(dout, q, k, v, out, lse, causal, scale, dq, dk, dv, blocks):
    """Write the gradients into `dq`, `dk` and `dv` by tensor descriptors; allocates δ."""
    delta = torch.empty_like(lse)
    launch_dq_by_descriptors(dout, q, k, v, out, lse, delta, causal, scale, dq, blocks)
    launch_dk_dv_by_descriptors(dout, q, k, v, lse, delta, causal, scale, dk, dv, blocks)


def flash_attention_backward(
    dout: torch.Tensor, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, out: torch.Tensor, lse: torch.Tensor,
    causal: bool = False, scale: float | None = None, blocks: Blocks | None = None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:  # fmt: skip
    """Return the gradients of q, k and v for the gradient dout of the output; contiguous.

    dout: as q; the rest as `flash_attention_with_lse` takes and returns it. Raises like `flash_attention`.
    """
    dq, dk, dv = _gradients("flash_attention_backward", dout, q, k, v, out, lse, causal, scale)
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    blocks = blocks or blocks_for("flash_attention_backward", q)
    launch_flash_attention_backward(dout, q, k, v, out, lse, causal, scale, dq, dk, dv, blocks)
    return dq, dk, dv


def flash_attention_backward_descriptors(
    dout: torch.Tensor, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, out: torch.Tensor, lse: torch.Tensor,
    causal: bool = False, scale: float | None = None, blocks: Blocks | None = None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:  # fmt: skip
    """Return what `flash_attention_backward` does, by tensor descriptors whatever the target's table says of those.

    Raises `ValueError` also for operands that the kernels do not take: as `flash_attention_descriptors`, dout too, and
    as many queries as a step has.
    """
    operator = "flash_attention_backward_descriptors"
    dq, dk, dv = _gradients(operator, dout, q, k, v, out, lse, causal, scale)
    blocks = blocks or blocks_for(operator, q)
    if not takes(q, k, v, dout, out, blocks):
        raise ValueError(
            f"{operator}: q {tuple(q.shape)}, k {tuple(k.shape)}; taken are heads of 16, 32, 64 or 128, rows at 16 "
            f"bytes, and {blocks['STEP']} queries and keys or more"
        )
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    launch_flash_attention_backward_descriptors(dout, q, k, v, out, lse, causal, scale, dq, dk, dv, blocks)
    return dq, dk, dv


def _gradients(operator, dout, q, k, v, out, lse, causal, scale):
    """Check the operands, and return empty gradients of q, k and v."""
    check_attention(operator, q, k, v, causal, scale, out, dout)
    check_device(operator, q=q, lse=lse)
    check_dtype(operator, (torch.float32,), lse=lse)
    check_shape(operator, lse=(lse, (q.shape[0], q.shape[2], q.shape[1])))
    check_contiguous(operator, lse=lse)
    return tuple(torch.empty(t.shape, dtype=t.dtype, device=t.device) for t in (q, k, v))


def _per_head(function, dout, q, k, v, out, lse, causal, scale):
    """Return the gradients that `function` gives head by head, summed over the heads that share keys and values."""
    dq, dk, dv = torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v)
    for b in range(q.shape[0]):
        for h in range(q.shape[2]):
            kv = h // (q.shape[2] // k.shape[2])
            operands = dout[b, :, h], q[b, :, h], k[b, :, kv], v[b, :, kv], out[b, :, h], lse[b, h]
            dq_head, dk_head, dv_head = function(*operands, causal, scale)
            dq[b, :, h] = dq_head
            dk[b, :, kv] += dk_head
            dv[b, :, kv] += dv_head
    return dq, dk, dv


def _probabilities(q, k, lse, causal, scale):
    p = torch.exp(q @ k.T * scale - lse[:, None])
    if causal:
        rows = torch.arange(len(q), device=q.device)[:, None]
        columns = torch.arange(len(k), device=q.device)[None, :]
        p = p.masked_fill(columns > rows + len(k) - len(q), 0.0)
    return p


def _reference(*inputs):
    def head(dout, q, k, v, out, lse, causal, scale):
        p = _probabilities(q, k, lse, causal, scale)
        ds = p * (dout @ v.T - (dout * out).sum(-1, keepdim=True))
        return scale * ds @ k, scale * ds.T @ q, p.T @ dout

    return _per_head(head, *inputs)


def _chain(*inputs):
    def head(dout, q, k, v, out, lse, causal, scale):
        q, k, v = (t.detach().clone().requires_grad_() for t in (q, k, v))
        return torch.autograd.grad(attention_of_head(q, k, v, causal, scale)[0], (q, k, v), dout)

    return _per_head(head, *inputs)


def _terms(*inputs):
    """As in the forward pass, exp turns the absolute error of a score into a relative one of P."""

    def head(dout, q, k, v, out, lse, causal, scale):
        exponent = (q.abs() @ k.abs().T * scale).amax(-1) if len(k) else torch.zeros_like(lse)
        p = _probabilities(q, k, lse, causal, scale) * (1 + exponent)[:, None]
        ds = p * (dout.abs() @ v.abs().T + (dout * out).abs().sum(-1, keepdim=True))
        return scale * ds @ k.abs(), scale * ds.T @ q.abs(), p.T @ dout.abs()

    return _per_head(head, *inputs)


def _saved(operands):
    """Turn the inputs of the forward pass into those of the backward pass, with right `out` and `lse`."""

    def inputs(draw: Draw):
        q, k, v, causal, scale = operands(draw)
        out, lse = torch.empty_like(q, dtype=torch.float64), torch.empty(q.shape[0], q.shape[2], q.shape[1])
        for b in range(q.shape[0]):
            for h in range(q.shape[2]):
                kv = h // (q.shape[2] // k.shape[2])
                heads = (t.double() for t in (q[b, :, h], k[b, :, kv], v[b, :, kv]))
                out[b, :, h], lse[b, h] = attention_of_head(*heads, causal, scale)
        return heads_first(draw.normal(*q.shape)), q, k, v, out.to(q.dtype), lse, causal, scale

    return inputs


def _long(D, causal, n=4096):
    """As long as models train, for timing: `out` and `lse` are of the right size, and not those of q, k and v."""

    def inputs(draw: Draw):
        q, k, v, causal_, scale = qkv(4, n, n, 32, 32, D, causal)(draw)
        lse = torch.full((4, 32, n), math.log(n) + 0.5)
        return draw.normal(*q.shape), q, k, v, draw.normal(*q.shape, scale=n**-0.5), lse, causal_, scale

    return inputs


def _cost(dout, q, k, v, out, lse, causal, scale, *gradients):
    flops = 10 * q.numel() * k.shape[1] * (0.5 if causal else 1.0)  # five products of scores' size
    return Cost(sum(t.nbytes for t in (dout, q, k, v, out, lse, *gradients)), flops, named(q.dtype))


HALF = ("float16", "bfloat16")

LONG = (
    Sample("4x4096x32x128", _long(128, False), bench=True, dtypes=HALF),
    Sample("4x4096x32x128-causal", _long(128, True), bench=True, dtypes=HALF),
)
SAMPLES = (
    Sample("0x9x2x16", _saved(qkv(0, 9, 9, 2, 2, 16))),
    Sample("1x1x1x16", _saved(qkv(1, 1, 1, 1, 1, 16))),
    Sample("2x77x2x64", _saved(qkv(2, 77, 77, 2, 2, 64))),
    Sample("1x131x2x64-causal", _saved(qkv(1, 131, 131, 2, 2, 64, causal=True)), quick=True),
    Sample("1x128x2x32-causal", _saved(qkv(1, 128, 128, 2, 2, 32, causal=True))),
    Sample("1x35x6x16-gqa-over-100", _saved(qkv(1, 35, 100, 6, 2, 16, causal=True))),
    Sample("1x129x2x16-over-65-causal", _saved(qkv(1, 129, 65, 2, 2, 16, causal=True))),
    Sample("1x130x2x16-over-128-causal", _saved(qkv(1, 130, 128, 2, 2, 16, causal=True))),
    Sample("1x5x2x16-over-0", _saved(qkv(1, 5, 0, 2, 2, 16))),
    Sample("1x70x2x80", _saved(qkv(1, 70, 70, 2, 2, 80))),
    Sample("1x70x1x256-causal", _saved(qkv(1, 70, 70, 1, 1, 256, causal=True)), dtypes=HALF),
    Sample("1x77x3x64-heads-first", _saved(qkv(1, 77, 77, 3, 3, 64, layout=heads_first))),
    Sample("1x77x2x32-scale", _saved(qkv(1, 77, 77, 2, 2, 32, causal=True, scale=0.3))),
)
DESCRIBED_SAMPLES = (  # as many keys, queries and as wide a head as the largest blocks of a table ask for
    Sample("1x140x2x128", _saved(qkv(1, 140, 140, 2, 2, 128))),
    Sample("1x132x2x128-causal", _saved(qkv(1, 132, 132, 2, 2, 128, causal=True)), quick=True),
    Sample("1x128x2x128-causal", _saved(qkv(1, 128, 128, 2, 2, 128, causal=True))),
    Sample("1x68x4x128-gqa-over-200", _saved(qkv(1, 68, 200, 4, 2, 128, causal=True))),
    Sample("1x264x1x128-over-130-causal", _saved(qkv(1, 264, 130, 1, 1, 128, causal=True))),
    Sample("2x140x2x128-heads-first", _saved(qkv(2, 140, 140, 2, 2, 128, layout=heads_first))),
)


def _case(name, operator, launch, samples, blocks):
    return KernelCase(
        name=name,
        operator=operator,
        launch=launch,
        reference=_reference,
        chain=_chain,
        terms=_terms,
        dtypes=tuple(map(named, FLOATS)),
        samples=samples,
        blocks=Blocks(HELD=64, STEP=32, num_warps=4, num_stages=2) | blocks,
        space={"HELD": (32, 64, 128), "STEP": (16, 32, 64, 128), "num_warps": (4, 8), "num_stages": (1, 2, 3)},
        cost=_cost,
        sweep=Sweep(
            powers_of_2(7, 13),
            lambda draw, n: _long(128, True, n)(draw),
            "tokens of 4 sequences, causal, 32 heads of 128",
        ),
    )


CASES = [
    _case(
        "flash_attention_backward",
        flash_attention_backward,
        launch_flash_attention_backward,
        (*SAMPLES, *LONG),
        {"DQ_DESCRIPTORS": 0, "DESCRIPTORS": 0},
    ),
    _case(
        "flash_attention_backward_descriptors",
        flash_attention_backward_descriptors,
        launch_flash_attention_backward_descriptors,
        (*DESCRIBED_SAMPLES, *LONG),
        {"HELD": 32, "DQ_STAGES": 2},
    ),
]
