"""Decoding attention: one query per sequence over a paged cache of keys and values (vLLM's PagedAttention, 2023).

    out = softmax(scale · q kᵀ) v,   k[t] = k_pages[page_table[t // PAGE], t % PAGE], v alike

One query gives little work, so the sequence is split among programs (Flash-Decoding, 2023). Each returns the output of
its part and the log-sum-exp of its scores, and the parts are combined by their share of the whole sum:

    out = Σₛ exp(lseₛ) · outₛ / Σₛ exp(lseₛ)

The query heads that share a head of keys are taken together, so that keys and values are read once for all of them.
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
    check_last_stride,
    check_no_gradient,
    check_shape,
)


@triton.jit
def split_kernel(
    q_ptr, k_ptr, v_ptr, table_ptr, lengths_ptr, part_ptr, lse_ptr, scale, n_heads, n_kv_heads, head_dim,
    stride_qb, stride_qh, stride_kp, stride_kt, stride_kh, stride_vp, stride_vt, stride_vh, stride_tb,
    PAGE: tl.constexpr, GROUP: tl.constexpr, BLOCK_H: tl.constexpr, BLOCK_D: tl.constexpr,
    SPLIT: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """Each program attends over SPLIT tokens of one sequence for the GROUP query heads of one head of keys."""
    batch = (tl.program_id(0) // n_kv_heads).to(tl.int64)
    kv_head = tl.program_id(0) % n_kv_heads
    split, n_splits = tl.program_id(1), tl.num_programs(1)
    start = split * SPLIT
    end = tl.minimum(start + SPLIT, tl.load(lengths_ptr + batch))
    if start >= end:  # past this sequence: `combine_kernel` does not look here
        return

    in_group = tl.arange(0, BLOCK_H) < GROUP
    heads = kv_head * GROUP + tl.arange(0, BLOCK_H)
    d = tl.arange(0, BLOCK_D)
    in_head = d < head_dim
    q_ptrs = q_ptr + batch * stride_qb + heads[:, None] * stride_qh + d[None, :]
    q = tl.load(q_ptrs, mask=in_group[:, None] & in_head[None, :], other=0.0)

    m = tl.full((BLOCK_H,), -float("inf"), dtype=tl.float32)
    l = tl.zeros((BLOCK_H,), dtype=tl.float32)
    acc = tl.zeros((BLOCK_H, BLOCK_D), dtype=tl.float32)
    for n in range(start, end, BLOCK_N):
        t = n + tl.arange(0, BLOCK_N)
        mask = (t < end)[:, None] & in_head[None, :]
        page = tl.load(table_ptr + batch * stride_tb + t // PAGE, mask=t < end, other=0).to(tl.int64)
        k_rows = k_ptr + page * stride_kp + (t % PAGE) * stride_kt + kv_head * stride_kh
        k = tl.load(k_rows[:, None] + d[None, :], mask=mask, other=0.0)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        scores = tl.where((t < end)[None, :], scores, -float("inf"))
        m_new = tl.maximum(m, tl.max(scores, axis=1))
        alpha = tl.exp(m - m_new)
        p = tl.exp(scores - m_new[:, None])
        l = l * alpha + tl.sum(p, axis=1)
        v_rows = v_ptr + page * stride_vp + (t % PAGE) * stride_vt + kv_head * stride_vh
        v = tl.load(v_rows[:, None] + d[None, :], mask=mask, other=0.0)
        acc = tl.dot(p.to(v.dtype), v, acc * alpha[:, None], input_precision="ieee")
        m = m_new

    parts = (batch * n_heads + heads) * n_splits + split
    part_ptrs = part_ptr + parts[:, None] * head_dim + d[None, :]
    tl.store(part_ptrs, acc / l[:, None], mask=in_group[:, None] & in_head[None, :])
    tl.store(lse_ptr + parts, m + tl.log(l), mask=in_group)


@triton.jit
def combine_kernel(
    part_ptr, lse_ptr, lengths_ptr, out_ptr, n_heads, n_splits, head_dim, stride_ob, stride_oh,
    SPLIT: tl.constexpr, BLOCK_S: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """Each program combines the parts of one head, BLOCK_S at a time. A sequence of no tokens gives 0."""
    batch, head = tl.program_id(0).to(tl.int64), tl.program_id(1)
    used = tl.cdiv(tl.load(lengths_ptr + batch), SPLIT)
    d = tl.arange(0, BLOCK_D)
    first = (batch * n_heads + head) * n_splits
    m = -float("inf")
    l = 0.0
    acc = tl.zeros((BLOCK_D,), dtype=tl.float32)
    for s0 in range(0, used, BLOCK_S):
        s = s0 + tl.arange(0, BLOCK_S)
        lse = tl.load(lse_ptr + first + s, mask=s < used, other=-float("inf"))
        part_ptrs = part_ptr + (first + s)[:, None] * head_dim + d[None, :]
        part = tl.load(part_ptrs, mask=(s < used)[:, None] & (d < head_dim)[None, :], other=0.0)
        m_new = tl.maximum(m, tl.max(lse, axis=0))
        alpha = tl.exp(m - m_new)
        share = tl.exp(lse - m_new)
        l = l * alpha + tl.sum(share, axis=0)
        acc = acc * alpha + tl.sum(share[:, None] * part, axis=0)
        m = m_new
    out = acc / tl.where(used > 0, l, 1.0)
    tl.store(out_ptr + batch * stride_ob + head * stride_oh + d, out.to(out_ptr.dtype.element_ty), mask=d < head_dim)


def launch_decode_attention(q, k_pages, v_pages, page_table, lengths, scale, out, blocks):
    """Write the attention of each query; the parts are scratch memory."""
    B, H, D = q.shape
    _, page, H_kv, _ = k_pages.shape
    if not out.numel():
        return
    SPLIT, BLOCK_S = blocks["SPLIT"], blocks["BLOCK_S"]
    BLOCK_D = max(16, next_power_of_2(D))
    n_splits = max(1, cdiv(page_table.shape[1] * page, SPLIT))
    part = torch.empty((B, H, n_splits, D), dtype=torch.float32, device=q.device)
    lse = torch.empty((B, H, n_splits), dtype=torch.float32, device=q.device)
    split_kernel[(B * H_kv, n_splits)](
        q, k_pages, v_pages, page_table, lengths, part, lse, D**-0.5 if scale is None else scale, H, H_kv, D,
        *q.stride()[:2], *k_pages.stride()[:3], *v_pages.stride()[:3], page_table.stride(0),
        PAGE=page, GROUP=H // H_kv, BLOCK_H=max(16, next_power_of_2(H // H_kv)), BLOCK_D=BLOCK_D,
        **{name: value for name, value in blocks.items() if name != "BLOCK_S"},
    )  # fmt: skip
    combine_kernel[(B, H)](
        part, lse, lengths, out, H, n_splits, D, *out.stride()[:2], SPLIT=SPLIT, BLOCK_S=BLOCK_S, BLOCK_D=BLOCK_D
    )


def decode_attention(
    q: torch.Tensor,
    k_pages: torch.Tensor,
    v_pages: torch.Tensor,
    page_table: torch.Tensor,
    lengths: torch.Tensor,
    scale: float | None = None,
    blocks: Blocks | None = None,
) -> torch.Tensor:
    """Return the attention of one query per sequence over its cached tokens, (B, H, D), contiguous.

    q                 (B, H, D), float32, float16 or bfloat16, last dimension contiguous
    k_pages, v_pages  (pages, page size, H_kv, D), of q's dtype, last dimension contiguous; H is a multiple of H_kv, and
                      query head h reads head h // (H / H_kv)
    page_table        (B, pages a sequence may have) int32: which page holds the tokens from i · page size on
    lengths           (B,) int32: how many tokens each sequence has; 0 gives an output of 0
    scale             of the scores; 1 / √D by default

    Values of page_table and lengths are not checked: they stay on the device. Raises `TypeError` for another dtype,
    `ValueError` for other shapes, layouts or devices.
    """
    check_pages("decode_attention", k_pages, v_pages, page_table, lengths, q=q)
    H_kv, D = k_pages.shape[2:]
    check_shape("decode_attention", q=(q, (len(lengths), "H", D)))
    if q.shape[1] % max(1, H_kv):
        raise ValueError(f"decode_attention: {q.shape[1]} query heads are no multiple of {H_kv} heads of keys")
    out = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    blocks = blocks or blocks_for("decode_attention", q)
    launch_decode_attention(q, k_pages, v_pages, page_table, lengths, scale, out, blocks)
    return out


def check_pages(operator, k_pages, v_pages, page_table, lengths, **heads):
    """Raise unless the pages fit each other and what else is given: tensors (B, …, D) that share their dtype."""
    check_device(operator, **heads, k_pages=k_pages, v_pages=v_pages, page_table=page_table, lengths=lengths)
    check_dtype(operator, FLOATS, **heads, k_pages=k_pages, v_pages=v_pages)
    check_dtype(operator, (torch.int32,), page_table=page_table, lengths=lengths)
    check_shape(operator, k_pages=(k_pages, ("pages", "page size", "H_kv", "D")), v_pages=(v_pages, k_pages.shape))
    check_shape(operator, lengths=(lengths, ("B",)), page_table=(page_table, (*lengths.shape, "pages")))
    check_last_stride(operator, **heads, k_pages=k_pages, v_pages=v_pages, page_table=page_table)
    check_contiguous(operator, lengths=lengths)
    check_no_gradient(operator, **heads, k_pages=k_pages, v_pages=v_pages)


def decode_attention_reference(q, k_pages, v_pages, page_table, lengths, scale):
    out = torch.zeros_like(q)
    for b, n in enumerate(lengths.tolist()):
        if n:
            scores, v = _scores(q[b], k_pages, v_pages, page_table[b], n, scale)
            out[b] = (scores.softmax(-1) @ v).squeeze(-2)
    return out


def decode_attention_terms(q, k_pages, v_pages, page_table, lengths, scale):
    """exp(s) errs by the error of s, which is relative to Σ|q k|, so the weights do."""
    out = torch.zeros_like(q)
    for b, n in enumerate(lengths.tolist()):
        if n:
            scores, v = _scores(q[b], k_pages, v_pages, page_table[b], n, scale)
            magnitude, _ = _scores(q[b].abs(), k_pages.abs(), v_pages, page_table[b], n, scale)
            out[b] = ((scores.softmax(-1) * (1 + magnitude.abs())) @ v.abs()).squeeze(-2)
    return out


def _scores(q, k_pages, v_pages, pages, n, scale):
    """Return the scores (H, 1, n) of one sequence's query, and its values (H, n, D)."""
    used = pages[: cdiv(n, k_pages.shape[1])].long()
    group = q.shape[0] // k_pages.shape[2]
    k, v = (x[used].flatten(0, 1)[:n].transpose(0, 1).repeat_interleave(group, 0) for x in (k_pages, v_pages))
    return q[:, None] @ k.transpose(1, 2) * (q.shape[-1] ** -0.5 if scale is None else scale), v


def shuffled_table(d: Draw, lengths, page, spare=1):
    """A table in which no sequence's pages lie in order, and as many pages as it names."""
    per_sequence = max(1, *(cdiv(n + spare, page) for n in lengths))
    n_pages = len(lengths) * per_sequence
    order = d.uniform(n_pages, dtype=torch.float32).argsort()
    return order.view(len(lengths), per_sequence).to(torch.int32), n_pages


def _operands(lengths, heads, kv_heads, head_dim, page=16, scale=None, copies=1, spare=1):
    def inputs(d: Draw):
        n = lengths(d) if callable(lengths) else lengths
        table, n_pages = shuffled_table(d, n, page, spare)
        k, v = (d.normal(cdiv(n_pages, copies), page, kv_heads, head_dim).repeat(copies, 1, 1, 1) for _ in range(2))
        for pages in (k, v):
            _leave_unwritten(pages, table, n)
        return d.normal(len(n), heads, head_dim), k, v, table, torch.tensor(n, dtype=torch.int32), scale

    return inputs


def _leave_unwritten(pages, table, lengths):
    """Put NaN into the slots behind each sequence's last token: nobody has written there, so anything may be."""
    slots = torch.arange(table.shape[1] * pages.shape[1]).view(table.shape[1], -1, 1, 1)
    for row, n in zip(table.long(), lengths, strict=True):
        pages[row] = pages[row].where(slots < n, float("nan"))


def _more_splits_than_a_block(d: Draw):
    """The last token has the largest score by far: what was summed up before it is scaled down."""
    last = d.blocks["SPLIT"] * d.blocks["BLOCK_S"]
    q, k, v, table, *rest = _operands((last + 1,), 1, 1, 16)(d)
    k[table[0, last // k.shape[1]], last % k.shape[1], 0] = 2 * q[0, 0]
    return q, k, v, table, *rest


def _of_length(d: Draw, n):
    return _operands((n,) * 16, 32, 8, 128, copies=16)(d)


def _around_a_split(d: Draw):
    n = d.blocks["SPLIT"]
    return n - 1, n, n + 1, 0


def _packed_pages(d: Draw):
    """Keys and values of one pool (pages, 2, page size, heads, D), as some servers keep them."""
    q, k, v, *rest = _operands((19, 40), 2, 2, 32)(d)
    pool = torch.stack((k, v), 1)
    return q, pool[:, 0], pool[:, 1], *rest


def _cost(q, k_pages, _v_pages, _table, lengths, _scale, out):
    tokens = int(lengths.sum())
    read = 2 * tokens * k_pages.shape[2] * k_pages.shape[3]
    return Cost((read + q.numel() + out.numel()) * q.element_size(), flops=4 * tokens * q.shape[1] * q.shape[2])


CASE = KernelCase(
    name="decode_attention",
    operator=decode_attention,
    launch=launch_decode_attention,
    reference=decode_attention_reference,
    terms=decode_attention_terms,
    samples=(
        Sample("1x1-d1", _operands((1,), 1, 1, 1)),
        Sample("33.7.0-h6.2-d40-page8", _operands((33, 7, 0), 6, 2, 40, page=8, scale=0.3), quick=True),
        Sample("64.48-h4.4-d64", _operands((64, 48), 4, 4, 64)),
        Sample("around-a-split-h2.1-d16", _operands(_around_a_split, 2, 1, 16)),
        Sample("more-splits-than-a-block-h1.1-d16", _more_splits_than_a_block),
        Sample("40.9-h4.2-d24-large-scores", _operands((40, 9), 4, 2, 24, scale=30.0)),  # exp overflows unshifted
        Sample("70-h20.1-d80", _operands((70,), 20, 1, 80)),  # more heads share keys than a small block holds
        Sample("19.40-h2.2-d32-packed", _packed_pages),
        Sample("13.40-h2.2-d16-page8-full", _operands((13, 40), 2, 2, 16, page=8, spare=0)),  # the table ends with it
        Sample("16x8192-h32.8-d128", _operands((8192,) * 16, 32, 8, 128, copies=19), bench=True),
    ),
    dtypes=("float32", "float16", "bfloat16"),
    cost=_cost,
    sweep=Sweep(powers_of_2(8, 15), _of_length, "tokens of 16 sequences, 32 heads on 8 of keys"),
    blocks=Blocks(SPLIT=256, BLOCK_N=32, BLOCK_S=16, num_warps=4, num_stages=1),
    space={
        "SPLIT": (128, 256, 512, 1024),
        "BLOCK_N": (16, 32, 64, 128),
        "num_warps": (2, 4, 8),
        "num_stages": (1, 2, 3),
    },
)
