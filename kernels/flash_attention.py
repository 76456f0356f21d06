"""Attention: out = softmax(scale · q kᵀ) v, without ever holding the scores of a whole row.

The scores are made block by block; maximum m, sum l and output are rescaled as m grows (Dao, FlashAttention-2, 2023).
Powers of 2 take the place of those of e, since that is what the hardware has: exp(x) = exp2(x · log2 e).
"""

import math

import torch
import triton
import triton.language as tl

from portability.kernel import Blocks, Cost, Draw, KernelCase, Sample, blocks_for, cdiv, next_power_of_2
from portability.kernels.checks import FLOATS, check_device, check_dtype, check_last_stride, check_shape, named

LOG2_E = math.log2(math.e)


@triton.jit
def load_rows(ptr, start, stride, n_rows, BLOCK: tl.constexpr, D: tl.constexpr, BLOCK_D: tl.constexpr):
    """Return rows `start` to `start + BLOCK` of a matrix of n_rows × D, with zeros past its end and past D."""
    rows = start + tl.arange(0, BLOCK)[:, None]
    d = tl.arange(0, BLOCK_D)[None, :]
    mask = rows < n_rows
    if D < BLOCK_D:
        mask &= d < D
    return tl.load(ptr + rows.to(tl.int64) * stride + d, mask=mask, other=0.0)


@triton.jit
def attend(
    acc, l, m, q, k_ptr, v_ptr, stride_kn, stride_vn, first_row, diagonal, start, stop, seq_k, scale,
    MASKED: tl.constexpr, CAUSAL: tl.constexpr, PRECISION: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, D: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """Return acc, l and m with the keys from `start` to `stop` added. MASKED: not every row sees all of them."""
    rows = first_row + tl.arange(0, BLOCK_M)[:, None]
    for start_n in range(start, stop, BLOCK_N):
        k = load_rows(k_ptr, start_n, stride_kn, seq_k, BLOCK_N, D, BLOCK_D)
        s = tl.dot(q, tl.trans(k), input_precision=PRECISION)
        if MASKED:
            columns = start_n + tl.arange(0, BLOCK_N)[None, :]
            visible = columns < seq_k  # a key past the end is 0, which is a score like any other
            if CAUSAL:
                visible &= columns <= rows + diagonal
            s = tl.where(visible, s, float("-inf"))
        m_new = tl.maximum(m, tl.max(s, axis=1) * scale)
        shift = m_new
        if MASKED:  # while a row has seen no key, there is nothing to subtract: -inf - -inf is NaN
            shift = tl.where(m_new == float("-inf"), 0.0, m_new)
        p = tl.exp2(s * scale - shift[:, None])
        alpha = tl.exp2(m - shift)
        l = l * alpha + tl.sum(p, axis=1)
        v = load_rows(v_ptr, start_n, stride_vn, seq_k, BLOCK_N, D, BLOCK_D)
        acc = tl.dot(p.to(v.dtype), v, acc * alpha[:, None], input_precision=PRECISION)
        m = m_new
    return acc, l, m


@triton.jit
def flash_attention_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, lse_ptr, scale, heads, heads_per_kv, seq_q, seq_k,
    stride_qb, stride_qm, stride_qh, stride_kb, stride_kn, stride_kh,
    stride_vb, stride_vn, stride_vh, stride_ob, stride_om, stride_oh,
    CAUSAL: tl.constexpr, PRECISION: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, D: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """Each program takes BLOCK_M queries of one head of one batch; `scale` includes log2 e."""
    # One grid axis for all three, since the others end at 65,535. Late queries see the most keys: they start first.
    tiles = tl.cdiv(seq_q, BLOCK_M)
    first_row = (tiles - 1 - tl.program_id(0) % tiles) * BLOCK_M
    head = tl.program_id(0) // tiles % heads
    batch = (tl.program_id(0) // tiles // heads).to(tl.int64)
    kv_head = head // heads_per_kv
    q_ptr += batch * stride_qb + head.to(tl.int64) * stride_qh
    k_ptr += batch * stride_kb + kv_head.to(tl.int64) * stride_kh
    v_ptr += batch * stride_vb + kv_head.to(tl.int64) * stride_vh
    out_ptr += batch * stride_ob + head.to(tl.int64) * stride_oh
    lse_ptr += (batch * heads + head) * seq_q

    diagonal = seq_k - seq_q  # row i sees keys up to i + diagonal: the last row sees the last key
    stop = seq_k
    unmasked = seq_k
    if CAUSAL:
        stop = tl.maximum(tl.minimum(seq_k, first_row + BLOCK_M + diagonal), 0)
        unmasked = tl.maximum(tl.minimum(seq_k, first_row + diagonal + 1), 0)
    unmasked = unmasked // BLOCK_N * BLOCK_N  # keys before it are seen by every row, in whole blocks

    q = load_rows(q_ptr, first_row, stride_qm, seq_q, BLOCK_M, D, BLOCK_D)
    acc = tl.zeros((BLOCK_M, BLOCK_D), tl.float32)
    l = tl.zeros((BLOCK_M,), tl.float32)
    m = tl.full((BLOCK_M,), float("-inf"), tl.float32)
    acc, l, m = attend(
        acc, l, m, q, k_ptr, v_ptr, stride_kn, stride_vn, first_row, diagonal, 0, unmasked, seq_k, scale,
        False, CAUSAL, PRECISION, BLOCK_M, BLOCK_N, D, BLOCK_D,
    )  # fmt: skip
    acc, l, m = attend(
        acc, l, m, q, k_ptr, v_ptr, stride_kn, stride_vn, first_row, diagonal, unmasked, stop, seq_k, scale,
        True, CAUSAL, PRECISION, BLOCK_M, BLOCK_N, D, BLOCK_D,
    )  # fmt: skip

    rows = first_row + tl.arange(0, BLOCK_M)
    out = acc / tl.where(l == 0.0, 1.0, l)[:, None]  # a row that saw no key: output 0, log-sum-exp -inf
    lse = (m + tl.log2(l)) / 1.4426950408889634  # back from powers of 2 to those of e
    d = tl.arange(0, BLOCK_D)[None, :]
    out_ptrs = out_ptr + rows[:, None].to(tl.int64) * stride_om + d
    tl.store(out_ptrs, out.to(out_ptr.dtype.element_ty), mask=(rows[:, None] < seq_q) & (d < D))
    tl.store(lse_ptr + rows, lse, mask=rows < seq_q)


def fit_head(D, itemsize, blocks):
    """Return the blocks for heads of D elements of `itemsize` bytes.

    A table's blocks are for rows of up to 256 bytes (128 float16); wider ones take as many elements in shorter blocks.
    """
    BLOCK_D = max(16, next_power_of_2(D))
    wider = max(1, BLOCK_D * itemsize // 256)
    shorter = {name: max(16, blocks[name] // wider) for name in ("BLOCK_M", "BLOCK_N")}
    return {**blocks, **shorter, "D": D, "BLOCK_D": BLOCK_D}


def launch_flash_attention(q, k, v, causal, scale, out, lse, blocks):
    """Write output and log-sum-exp into `out` and `lse`."""
    batch, seq_q, heads, D = q.shape
    seq_k, kv_heads = k.shape[1:3]
    if not q.numel():
        return
    blocks = fit_head(D, q.element_size(), blocks)
    flash_attention_kernel[(cdiv(seq_q, blocks["BLOCK_M"]) * heads * batch,)](
        q, k, v, out, lse, scale * LOG2_E, heads, heads // kv_heads, seq_q, seq_k,
        *q.stride()[:3], *k.stride()[:3], *v.stride()[:3], *out.stride()[:3],
        CAUSAL=causal, PRECISION="ieee", **blocks,
    )  # fmt: skip


def flash_attention_with_lse(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool = False, scale: float | None = None,
    blocks: Blocks | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
    """Return `flash_attention` of the operands, and the log-sum-exp of each row: float32 (batch, heads, seq_q)."""
    check("flash_attention", q, k, v, causal, scale)
    out = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    lse = torch.empty((q.shape[0], q.shape[2], q.shape[1]), dtype=torch.float32, device=q.device)
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    launch_flash_attention(q, k, v, causal, scale, out, lse, blocks or blocks_for("flash_attention", q))
    return out, lse


def check(operator, q, k, v, causal, scale, **like_q):
    """Raise what `flash_attention` says for operands that it does not take; `like_q` are shaped like q."""
    check_device(operator, q=q, k=k, v=v, **like_q)
    check_dtype(operator, FLOATS, q=q, k=k, v=v, **like_q)
    check_shape(operator, q=(q, ("batch", "seq_q", "heads", "D")), k=(k, ("batch", "seq_k", "kv_heads", "D")))
    batch, _, heads, D = q.shape
    check_shape(operator, k=(k, (batch, "seq_k", "kv_heads", D)), v=(v, k.shape))
    check_shape(operator, **{name: (t, q.shape) for name, t in like_q.items()})
    if not isinstance(causal, bool):
        raise TypeError(f"{operator}: causal is a {type(causal).__name__}; taken is a bool. No mask of another form is")
    if heads % max(1, k.shape[2]) or (heads and not k.shape[2]):
        raise ValueError(f"{operator}: {heads} query heads, {k.shape[2]} of keys; a multiple is taken")
    if not 1 <= D <= 256:
        raise ValueError(f"{operator}: heads have dimension {D}; 1 to 256 is taken")
    if scale is not None and not scale > 0:
        raise ValueError(f"{operator}: scale is {scale}; a positive number is taken")
    check_last_stride(operator, q=q, k=k, v=v, **like_q)


def _head(q, k, v, causal, scale):
    """Attention of one head in plain torch: q of (seq_q, D), k and v of (seq_k, D)."""
    s = q @ k.T * scale
    if causal:
        rows, columns = torch.arange(len(q))[:, None], torch.arange(len(k))[None, :]
        s = s.masked_fill(columns > rows + len(k) - len(q), float("-inf"))
    lse = torch.logsumexp(s, -1)
    return torch.exp(s - lse.masked_fill(lse == float("-inf"), 0.0)[:, None]) @ v, lse


def per_head(function, q, k, v, causal, scale):
    """Return what `function` gives for each head, as (batch, seq_q, heads, D) and (batch, heads, seq_q).

    Head by head, so that long sequences fit into memory.
    """
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    out, lse = torch.empty_like(q), q.new_empty((q.shape[0], q.shape[2], q.shape[1]))
    for b in range(q.shape[0]):
        for h in range(q.shape[2]):
            kv = h // (q.shape[2] // k.shape[2])
            out[b, :, h], lse[b, h] = function(q[b, :, h], k[b, :, kv], v[b, :, kv], causal, scale)
    return out, lse


def _reference(q, k, v, causal, scale):
    return per_head(_head, q, k, v, causal, scale)


def _terms(q, k, v, causal, scale):
    """exp turns the absolute error of a score, u · scale · Σ|q||k|, into a relative one of its probability."""

    def head(q, k, v, causal, scale):
        out, lse = _head(q, k, v.abs(), causal, scale)
        largest = (q.abs() @ k.abs().T * scale).amax(-1) if len(k) else torch.zeros_like(lse)
        return out * (1 + 2 * largest[:, None]), lse.abs() + 1 + largest

    return per_head(head, q, k, v, causal, scale)


def _torch(q, k, v, causal, scale):
    q, k, v = (t.transpose(1, 2) for t in (q, k, v))
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal, scale=scale, enable_gqa=True)


def _cost(q, k, v, causal, scale, out, lse):
    flops = 4 * q.numel() * k.shape[1] * (0.5 if causal else 1.0)
    return Cost(sum(t.nbytes for t in (q, k, v, out, lse)), flops, named(q.dtype))


def qkv(batch, seq_q, seq_k, heads, kv_heads, D, causal=False, scale=None, layout=None, size=1.0):
    """Return what draws the operands of these sizes; `layout` changes q, k and v."""

    def inputs(draw: Draw):
        shapes = ((batch, seq_q, heads, D), (batch, seq_k, kv_heads, D), (batch, seq_k, kv_heads, D))
        q, k, v = (draw.normal(*shape, scale=size) for shape in shapes)
        if layout:
            q, k, v = map(layout, (q, k, v))
        return q, k, v, causal, D**-0.5 if scale is None else scale

    return inputs


def heads_first(t):
    """The same values and shape, out of a tensor of (batch, heads, sequence, dim)."""
    return t.transpose(1, 2).contiguous().transpose(1, 2)


FORWARD = KernelCase(
    name="flash_attention",
    operator=flash_attention_with_lse,
    launch=launch_flash_attention,
    reference=_reference,
    terms=_terms,
    torch=_torch,
    dtypes=tuple(map(named, FLOATS)),
    samples=(
        Sample("0x9x2x16", qkv(0, 9, 9, 2, 2, 16)),
        Sample("1x1x1x16", qkv(1, 1, 1, 1, 1, 16)),
        Sample("2x77x3x64", qkv(2, 77, 77, 3, 3, 64)),
        Sample("1x131x2x64-causal", qkv(1, 131, 131, 2, 2, 64, causal=True), quick=True),
        Sample("1x128x2x32-causal", qkv(1, 128, 128, 2, 2, 32, causal=True)),
        Sample("1x1x6x64-gqa-over-129", qkv(1, 1, 129, 6, 2, 64, causal=True)),
        Sample("2x65x6x16-gqa-over-200", qkv(2, 65, 200, 6, 2, 16, causal=True)),
        Sample("1x129x2x16-over-65-causal", qkv(1, 129, 65, 2, 2, 16, causal=True)),  # the first 64 rows see nothing
        Sample("1x5x2x16-over-0", qkv(1, 5, 0, 2, 2, 16)),  # no row sees anything
        Sample("1x70x2x80", qkv(1, 70, 70, 2, 2, 80)),
        Sample("1x70x1x96-causal", qkv(1, 70, 70, 1, 1, 96, causal=True)),
        Sample("1x70x1x128", qkv(1, 70, 70, 1, 1, 128)),
        Sample("1x70x1x192", qkv(1, 70, 70, 1, 1, 192)),
        Sample("1x70x1x256-causal", qkv(1, 70, 70, 1, 1, 256, causal=True)),
        Sample("2x77x3x64-heads-first", qkv(2, 77, 77, 3, 3, 64, layout=heads_first)),
        Sample("1x77x2x32-large", qkv(1, 77, 77, 2, 2, 32, size=6.0)),  # exp overflows without the maximum
        Sample("1x77x2x32-scale", qkv(1, 77, 77, 2, 2, 32, causal=True, scale=0.3)),
        Sample("4x4096x32x128", qkv(4, 4096, 4096, 32, 32, 128), bench=True, dtypes=("float16", "bfloat16")),
        Sample(
            "4x4096x32x128-causal", qkv(4, 4096, 4096, 32, 32, 128, True), bench=True, dtypes=("float16", "bfloat16")
        ),
        Sample("4x4096x32x64-causal", qkv(4, 4096, 4096, 32, 32, 64, True), bench=True, dtypes=("float16", "bfloat16")),
    ),
    blocks=Blocks(BLOCK_M=64, BLOCK_N=32, num_warps=4, num_stages=2),
    space={"BLOCK_M": (32, 64, 128), "BLOCK_N": (32, 64, 128), "num_warps": (4, 8), "num_stages": (1, 2, 3)},
    cost=_cost,
)

CASES = [FORWARD]
