"""Attention: out = softmax(scale · q kᵀ) v, without ever holding the scores of a whole row.

The scores are made block by block; maximum m, sum l and output are rescaled as m grows (Dao, FlashAttention-2, 2023).
Powers of 2 take the place of those of e, since that is what the hardware has: exp(x) = exp2(x · log2 e).
"""

import math

import torch
import triton
import triton.language as tl
from torch.autograd.function import once_differentiable

from portability.kernel import Blocks, Cost, Draw, KernelCase, Sample, Sweep, blocks_for, cdiv, powers_of_2
from portability.kernels.attention import (
    add_sums,
    attention_of_head,
    check_attention,
    fit_head,
    heads_first,
    load_rows,
    load_tile,
    online_softmax,
    per_head,
    qkv,
    row_pointers,
)
from portability.kernels.checks import FLOATS, check_no_gradient, differentiating, named
from portability.kernels.flash_attention_backward import flash_attention_backward
from portability.kernels.flash_attention_descriptors import blocks_of_heads, launch_flash_attention_descriptors, takes

LOG2_E = tl.constexpr(math.log2(math.e))


@triton.jit
def attend(
    acc, l, m, q, k_ptr, v_ptr, stride_kn, stride_vn, first_row, diagonal, start, stop, seq_k, scale,
    MASKED: tl.constexpr, CAUSAL: tl.constexpr, PRECISION: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, D: tl.constexpr, BLOCK_D: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    """Return acc, l and m with the keys from `start` to `stop` added. MASKED: not every row sees all of them."""
    rows = first_row + tl.arange(0, BLOCK_M)[:, None]
    k_ptrs = row_pointers(k_ptr, start, stride_kn, BLOCK_N, BLOCK_D)
    v_ptrs = row_pointers(v_ptr, start, stride_vn, BLOCK_N, BLOCK_D)
    for start_n in range(start, stop, BLOCK_N):
        k = load_tile(k_ptrs, seq_k - start_n, MASKED, BLOCK_N, D, BLOCK_D)
        s = tl.dot(q, tl.trans(k), input_precision=PRECISION)
        if MASKED:
            columns = start_n + tl.arange(0, BLOCK_N)[None, :]
            visible = columns < seq_k  # a key past the end is 0, which is a score like any other
            if CAUSAL:
                visible &= columns <= rows + diagonal
            s = tl.where(visible, s, float("-inf"))
        p, alpha, m = online_softmax(s, m, scale, MASKED)
        l = add_sums(l, p, alpha, BLOCK_M, BLOCK_N, LANES)
        v = load_tile(v_ptrs, seq_k - start_n, MASKED, BLOCK_N, D, BLOCK_D)
        acc = tl.dot(p.to(v.dtype), v, acc * alpha[:, None], input_precision=PRECISION)
        k_ptrs += tl.cast(BLOCK_N, tl.int64) * stride_kn
        v_ptrs += tl.cast(BLOCK_N, tl.int64) * stride_vn
    return acc, l, m


@triton.jit
def flash_attention_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, lse_ptr, scale, heads, heads_per_kv, seq_q, seq_k,
    stride_qb, stride_qm, stride_qh, stride_kb, stride_kn, stride_kh,
    stride_vb, stride_vn, stride_vh, stride_ob, stride_om, stride_oh,
    CAUSAL: tl.constexpr, PRECISION: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, D: tl.constexpr, BLOCK_D: tl.constexpr, LANES: tl.constexpr,
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

    diagonal = seq_k - seq_q  # row i sees keys up to i + diagonal: the last row sees the last key
    stop = seq_k
    unmasked = seq_k
    if CAUSAL:
        stop = tl.maximum(tl.minimum(seq_k, first_row + BLOCK_M + diagonal), 0)
        unmasked = tl.maximum(tl.minimum(seq_k, first_row + diagonal + 1), 0)
    unmasked = unmasked // BLOCK_N * BLOCK_N  # keys before it are seen by every row, in whole blocks

    q = load_rows(q_ptr, first_row, stride_qm, seq_q, BLOCK_M, D, BLOCK_D)
    acc = tl.zeros((BLOCK_M, BLOCK_D), tl.float32)
    l = tl.zeros((BLOCK_M,) if LANES == 1 else (BLOCK_M, LANES), tl.float32)
    m = tl.full((BLOCK_M,), float("-inf"), tl.float32)
    acc, l, m = attend(
        acc, l, m, q, k_ptr, v_ptr, stride_kn, stride_vn, first_row, diagonal, 0, unmasked, seq_k, scale,
        False, CAUSAL, PRECISION, BLOCK_M, BLOCK_N, D, BLOCK_D, LANES,
    )  # fmt: skip
    acc, l, m = attend(
        acc, l, m, q, k_ptr, v_ptr, stride_kn, stride_vn, first_row, diagonal, unmasked, stop, seq_k, scale,
        True, CAUSAL, PRECISION, BLOCK_M, BLOCK_N, D, BLOCK_D, LANES,
    )  # fmt: skip

    if LANES > 1:
        l = tl.sum(l, axis=1)
    rows = first_row + tl.arange(0, BLOCK_M)
    out = acc / tl.where(l == 0.0, 1.0, l)[:, None]  # a row that saw no key: output 0, log-sum-exp -inf
    d = tl.arange(0, BLOCK_D)[None, :]
    out_ptrs = out_ptr + rows[:, None].to(tl.int64) * stride_om + d
    tl.store(out_ptrs, out.to(out_ptr.dtype.element_ty), mask=(rows[:, None] < seq_q) & (d < D))
    if lse_ptr is not None:
        lse = (m + tl.log2(l)) / LOG2_E  # back from powers of 2 to those of e
        tl.store(lse_ptr + (batch * heads + head) * seq_q + rows, lse, mask=rows < seq_q)


def launch_flash_attention(q, k, v, causal, scale, out, lse, blocks):
    """Write the output into `out`, and the log-sum-exp that a gradient needs into `lse` unless that is None."""
    batch, seq_q, heads, D = q.shape
    seq_k, kv_heads = k.shape[1:3]
    if not q.numel():
        return
    described = blocks_of_heads(q, causal) if 0 < blocks["DESCRIPTORS"] <= D else None
    if described and takes(q, k, v, described):
        launch_flash_attention_descriptors(q, k, v, causal, scale, out, lse, described)
        return
    blocks = fit_head(D, q.element_size(), blocks)
    flash_attention_kernel[(cdiv(seq_q, blocks["BLOCK_M"]) * heads * batch,)](
        q, k, v, out, lse, scale * LOG2_E.value, heads, heads // kv_heads, seq_q, seq_k,
        *q.stride()[:3], *k.stride()[:3], *v.stride()[:3], *out.stride()[:3],
        CAUSAL=causal, PRECISION="ieee", **blocks,
    )  # fmt: skip


def flash_attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool = False, scale: float | None = None,
    blocks: Blocks | None = None,
) -> torch.Tensor:  # fmt: skip
    """Return softmax(scale · q kᵀ) v, contiguous, in the shape and dtype of q; differentiable.

    q: (batch, seq_q, heads, D), k and v: (batch, seq_k, kv_heads, D), where heads is a multiple of kv_heads, of which
    each serves as many neighbours; D is 1 to 256; float32 (multiplied as such), float16 or bfloat16; any strides that
    have 1 in the last dimension, so that views of (batch, heads, sequence, D) are taken as they lie.
    causal: the last query sees the last key (bottom right), and the one before it one key less. A row that sees no
    key gives 0. scale: positive, by default 1 / sqrt(D). An arbitrary mask is not taken.
    Raises `ValueError` for shapes, layouts, devices and numbers that do not fit, `TypeError` for dtypes.
    """
    if differentiating(q, k, v):
        return _FlashAttention.apply(q, k, v, causal, scale, blocks)
    check_attention("flash_attention", q, k, v, causal, scale)
    out = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    launch_flash_attention(q, k, v, causal, scale, out, None, blocks or blocks_for("flash_attention", q))
    return out


def flash_attention_with_lse(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool = False, scale: float | None = None,
    blocks: Blocks | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
    """Return `flash_attention` of the operands, and the log-sum-exp of each row: float32 (batch, heads, seq_q)."""
    check_attention("flash_attention", q, k, v, causal, scale)
    check_no_gradient("flash_attention_with_lse", q=q, k=k, v=v)
    out = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    lse = torch.empty((q.shape[0], q.shape[2], q.shape[1]), dtype=torch.float32, device=q.device)
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    launch_flash_attention(q, k, v, causal, scale, out, lse, blocks or blocks_for("flash_attention", q))
    return out, lse


def flash_attention_descriptors(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool = False, scale: float | None = None,
    blocks: Blocks | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
    """Return what `flash_attention_with_lse` does, by tensor descriptors whatever the target's table says of those.

    Raises `ValueError` also for operands that the kernel does not take: D is 16, 32, 64 or 128, there are as many keys
    as a block has, and rows begin at multiples of 16 bytes in one matrix.
    """
    check_attention("flash_attention_descriptors", q, k, v, causal, scale)
    blocks = blocks or blocks_of_heads(q, causal)
    if not takes(q, k, v, blocks):
        raise ValueError(
            f"flash_attention_descriptors: q {tuple(q.shape)}, k {tuple(k.shape)}, strides {q.stride()}, {k.stride()}, "
            f"{v.stride()}; taken are heads of 16, 32, 64 or 128, {blocks['BLOCK_N']} keys or more, rows at 16 bytes"
        )
    out = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    lse = torch.empty((q.shape[0], q.shape[2], q.shape[1]), dtype=torch.float32, device=q.device)
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    launch_flash_attention_descriptors(q, k, v, causal, scale, out, lse, blocks)
    return out, lse


def flash_attention_descriptors_narrow(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool = False, scale: float | None = None,
    blocks: Blocks | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
    """Return the same with the blocks of narrow heads, which `flash_attention_descriptors` takes itself up to 64."""
    blocks = blocks or blocks_for("flash_attention_descriptors_narrow", q)
    return flash_attention_descriptors(q, k, v, causal, scale, blocks)


def flash_attention_descriptors_causal(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool = True, scale: float | None = None,
    blocks: Blocks | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
    """Return the same with the blocks of wide causal heads, which `flash_attention_descriptors` takes itself."""
    blocks = blocks or blocks_for("flash_attention_descriptors_causal", q)
    return flash_attention_descriptors(q, k, v, causal, scale, blocks)


class _FlashAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v, causal, scale, blocks):
        out, lse = flash_attention_with_lse(q, k, v, causal, scale, blocks)
        ctx.save_for_backward(q, k, v, out, lse)
        ctx.causal, ctx.scale = causal, scale
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx, dout):
        gradients = flash_attention_backward(dout.contiguous(), *ctx.saved_tensors, ctx.causal, ctx.scale)
        return *gradients, None, None, None


def _reference(q, k, v, causal, scale):
    return per_head(attention_of_head, q, k, v, causal, scale)


def _terms(q, k, v, causal, scale):
    """exp turns the absolute error of a score, u · scale · Σ|q||k|, into a relative one of its probability."""

    def head(q, k, v, causal, scale):
        out, lse = attention_of_head(q, k, v.abs(), causal, scale)
        largest = (q.abs() @ k.abs().T * scale).amax(-1) if len(k) else torch.zeros_like(lse)
        return out * (1 + largest[:, None]), lse.abs() + 1 + largest

    return per_head(head, q, k, v, causal, scale)


def _torch(q, k, v, causal, scale):
    q, k, v = (t.transpose(1, 2) for t in (q, k, v))
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal, scale=scale, enable_gqa=True)


def _of_length(draw: Draw, n):
    return qkv(4, n, n, 32, 32, 128, causal=True)(draw)


def _cost(q, k, v, causal, scale, out, lse):
    flops = 4 * q.numel() * k.shape[1] * (0.5 if causal else 1.0)
    return Cost(sum(t.nbytes for t in (q, k, v, out, lse)), flops, named(q.dtype))


LONG = (
    Sample("4x4096x32x128", qkv(4, 4096, 4096, 32, 32, 128), bench=True, dtypes=("float16", "bfloat16")),
    Sample("4x4096x32x128-causal", qkv(4, 4096, 4096, 32, 32, 128, True), bench=True, dtypes=("float16", "bfloat16")),
    Sample("4x4096x32x64-causal", qkv(4, 4096, 4096, 32, 32, 64, True), bench=True, dtypes=("float16", "bfloat16")),
)
SAMPLES = (
    Sample("0x9x2x16", qkv(0, 9, 9, 2, 2, 16)),
    Sample("1x1x1x16", qkv(1, 1, 1, 1, 1, 16)),
    Sample("2x77x3x64", qkv(2, 77, 77, 3, 3, 64)),
    Sample("1x131x2x64-causal", qkv(1, 131, 131, 2, 2, 64, causal=True), quick=True),
    Sample("1x128x2x32-causal", qkv(1, 128, 128, 2, 2, 32, causal=True)),
    Sample("1x1x6x64-gqa-over-129", qkv(1, 1, 129, 6, 2, 64, causal=True)),
    Sample("1x35x6x16-gqa-over-100", qkv(1, 35, 100, 6, 2, 16, causal=True)),
    Sample("1x129x2x16-over-65-causal", qkv(1, 129, 65, 2, 2, 16, causal=True)),  # the first 64 rows see nothing
    Sample("1x130x2x16-over-128-causal", qkv(1, 130, 128, 2, 2, 16, causal=True)),  # a block's first row lacks one key
    Sample("1x5x2x16-over-0", qkv(1, 5, 0, 2, 2, 16)),  # no row sees anything
    Sample("1x70x2x80", qkv(1, 70, 70, 2, 2, 80)),
    Sample("1x70x1x96-causal", qkv(1, 70, 70, 1, 1, 96, causal=True)),
    Sample("1x70x1x128", qkv(1, 70, 70, 1, 1, 128)),
    Sample("1x70x1x192", qkv(1, 70, 70, 1, 1, 192)),
    Sample("1x70x1x256-causal", qkv(1, 70, 70, 1, 1, 256, causal=True)),
    Sample("2x77x3x64-heads-first", qkv(2, 77, 77, 3, 3, 64, layout=heads_first)),
    Sample("1x77x2x32-large", qkv(1, 77, 77, 2, 2, 32, size=6.0)),  # exp overflows without the maximum
    Sample("1x77x2x32-scale", qkv(1, 77, 77, 2, 2, 32, causal=True, scale=0.3)),
)


def _described(D):
    """As many keys as the largest blocks of a table ask for; D is as wide as those are for."""
    return (
        Sample(f"2x140x3x{D}", qkv(2, 140, 140, 3, 3, D)),
        Sample(f"1x131x2x{D}-causal", qkv(1, 131, 131, 2, 2, D, causal=True), quick=True),
        Sample(f"1x256x2x{D}-causal", qkv(1, 256, 256, 2, 2, D, causal=True)),
        Sample(f"1x1x6x{D}-gqa-over-129", qkv(1, 1, 129, 6, 2, D, causal=True)),
        Sample(f"1x35x6x{D}-gqa-over-200", qkv(1, 35, 200, 6, 2, D, causal=True)),
        Sample(f"1x261x2x{D}-over-130-causal", qkv(1, 261, 130, 2, 2, D, causal=True)),  # the first 131 see nothing
        Sample(f"1x128x1x{D}", qkv(1, 128, 128, 1, 1, D)),
        Sample(f"2x140x3x{D}-heads-first", qkv(2, 140, 140, 3, 3, D, layout=heads_first)),
        Sample(f"1x140x2x{D}-large", qkv(1, 140, 140, 2, 2, D, size=6.0)),
    )


# Three tiles of each of 16 heads on 16 programs, which have taken all pairs when the tiles in the middle come.
MANY_HEADS = Sample("1x131x16x128-causal", qkv(1, 131, 131, 16, 16, 128, causal=True))


def _case(name, operator, launch, samples, blocks):
    return KernelCase(
        name=name,
        operator=operator,
        launch=launch,
        reference=_reference,
        terms=_terms,
        torch=_torch,
        dtypes=tuple(map(named, FLOATS)),
        samples=samples,
        blocks=Blocks(BLOCK_M=64, BLOCK_N=32, num_warps=4, num_stages=2) | blocks,
        space={"BLOCK_M": (32, 64, 128), "BLOCK_N": (32, 64, 128), "num_warps": (4, 8), "num_stages": (1, 2, 3)},
        cost=_cost,
        sweep=Sweep(powers_of_2(7, 13), _of_length, "tokens of 4 sequences, causal, 32 heads of 128"),
    )


DESCRIBED = {"PROGRAMS": 16, "LANES": 1, "SPECIALIZE": 0, "HOLD": 0}
CASES = [
    _case(
        "flash_attention",
        flash_attention_with_lse,
        launch_flash_attention,
        (*SAMPLES, *LONG),
        {"DESCRIPTORS": 0, "LANES": 1},
    ),
    _case(
        "flash_attention_descriptors",
        flash_attention_descriptors,
        launch_flash_attention_descriptors,
        (*_described(128), MANY_HEADS, *LONG),
        DESCRIBED,
    ),
    _case(
        "flash_attention_descriptors_narrow",
        flash_attention_descriptors_narrow,
        launch_flash_attention_descriptors,
        (*_described(64), *LONG[2:]),
        DESCRIBED,
    ),
    _case(
        "flash_attention_descriptors_causal",
        flash_attention_descriptors_causal,
        launch_flash_attention_descriptors,
        (*(sample for sample in _described(128) if "causal" in sample.name or "gqa" in sample.name), LONG[1]),
        DESCRIBED,
    ),
]
