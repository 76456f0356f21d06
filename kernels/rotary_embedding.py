"""Rotary position embedding (Su et al., RoFormer, 2021): each pair of features turns by an angle θ of its position.

    out₁ = x₁ · cos θ - x₂ · sin θ
    out₂ = x₂ · cos θ + x₁ · sin θ

A pair is (x[i], x[i + R/2]) (the halves of GPT-NeoX and Llama) or (x[2i], x[2i + 1]) (interleaved, as in the paper).
Features from R on stay as they are. A rotation's gradient is the rotation by -θ: one kernel serves both ways.
"""

import functools
from typing import Any

import torch
import triton
import triton.language as tl
from torch.autograd.function import once_differentiable

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
    check_device,
    check_dtype,
    check_last_stride,
    check_no_gradient,
    check_shape,
    contiguous_like,
    differentiating,
    once_per_layout,
)


@triton.jit
def turn_heads(
    x_ptr, cos_ptr, sin_ptr, out_ptr, seq_len, n_heads, first_head,
    stride_xb, stride_xs, stride_xh, stride_xd, stride_ob, stride_os, stride_oh,
    stride_cb, stride_cs, stride_sb, stride_ss,
    HALF: tl.constexpr, REST: tl.constexpr, PAIRS: tl.constexpr, PASSED: tl.constexpr,
    INTERLEAVED: tl.constexpr, INVERSE: tl.constexpr, BLOCK_H: tl.constexpr,
):  # fmt: skip
    """Turn BLOCK_H heads of this program's token, from `first_head` on, by the HALF angles of its position."""
    batch = (tl.program_id(0) // seq_len).to(tl.int64)
    position = (tl.program_id(0) % seq_len).to(tl.int64)
    heads = first_head + tl.arange(0, BLOCK_H)
    x_rows = x_ptr + batch * stride_xb + position * stride_xs + heads[:, None] * stride_xh
    out_rows = out_ptr + batch * stride_ob + position * stride_os + heads[:, None] * stride_oh

    pair = tl.arange(0, PAIRS)
    in_pair = pair < HALF
    cos = tl.load(cos_ptr + batch * stride_cb + position * stride_cs + pair, mask=in_pair).to(tl.float32)
    sin = tl.load(sin_ptr + batch * stride_sb + position * stride_ss + pair, mask=in_pair).to(tl.float32)
    if INVERSE:
        sin = -sin

    first = 2 * pair if INTERLEAVED else pair
    second = 2 * pair + 1 if INTERLEAVED else pair + HALF
    mask = (heads < n_heads)[:, None] & in_pair[None, :]
    x1 = tl.load(x_rows + first[None, :] * stride_xd, mask=mask).to(tl.float32)
    x2 = tl.load(x_rows + second[None, :] * stride_xd, mask=mask).to(tl.float32)
    out1 = x1 * cos[None, :] - x2 * sin[None, :]
    out2 = x2 * cos[None, :] + x1 * sin[None, :]
    tl.store(out_rows + first[None, :], out1.to(out_ptr.dtype.element_ty), mask=mask)
    tl.store(out_rows + second[None, :], out2.to(out_ptr.dtype.element_ty), mask=mask)

    if REST > 0:  # features past the rotary dimension
        rest = tl.arange(0, PASSED)
        mask = (heads < n_heads)[:, None] & (rest < REST)[None, :]
        x = tl.load(x_rows + (2 * HALF + rest)[None, :] * stride_xd, mask=mask)
        tl.store(out_rows + (2 * HALF + rest)[None, :], x, mask=mask)


@triton.jit
def rotary_kernel(
    x_ptr, cos_ptr, sin_ptr, out_ptr, seq_len, n_heads,
    stride_xb, stride_xs, stride_xh, stride_xd, stride_ob, stride_os, stride_oh,
    stride_cb, stride_cs, stride_sb, stride_ss,
    HALF: tl.constexpr, REST: tl.constexpr, PAIRS: tl.constexpr, PASSED: tl.constexpr,
    INTERLEAVED: tl.constexpr, INVERSE: tl.constexpr, BLOCK_H: tl.constexpr,
):  # fmt: skip
    """Each program turns BLOCK_H heads of one token."""
    turn_heads(
        x_ptr, cos_ptr, sin_ptr, out_ptr, seq_len, n_heads, tl.program_id(1) * BLOCK_H,
        stride_xb, stride_xs, stride_xh, stride_xd, stride_ob, stride_os, stride_oh,
        stride_cb, stride_cs, stride_sb, stride_ss,
        HALF, REST, PAIRS, PASSED, INTERLEAVED, INVERSE, BLOCK_H,
    )  # fmt: skip


@triton.jit
def rotary_pair_kernel(
    q_ptr, k_ptr, cos_ptr, sin_ptr, q_out_ptr, k_out_ptr, seq_len, q_heads, k_heads,
    stride_qb, stride_qs, stride_qh, stride_kb, stride_ks, stride_kh, stride_cb, stride_cs,
    HALF: tl.constexpr, REST: tl.constexpr, PAIRS: tl.constexpr, PASSED: tl.constexpr,
    INTERLEAVED: tl.constexpr, INVERSE: tl.constexpr, BLOCK_H: tl.constexpr,
):  # fmt: skip
    """Each program turns BLOCK_H heads of one token: of its query, or, past those, of its key.

    What follows from other arguments is none: each costs time in a launch, and Triton 3.6 takes no more than some 30
    for gfx1250.
    """
    block, q_blocks = tl.program_id(1), tl.cdiv(q_heads, BLOCK_H)
    HEAD: tl.constexpr = 2 * HALF + REST
    head = tl.full((), HEAD, tl.int64)  # the outputs are contiguous
    if block < q_blocks:
        q_token = q_heads * head
        turn_heads(
            q_ptr, cos_ptr, sin_ptr, q_out_ptr, seq_len, q_heads, block * BLOCK_H,
            stride_qb, stride_qs, stride_qh, 1, q_token * seq_len, q_token, HEAD,
            stride_cb, stride_cs, stride_cb, stride_cs,
            HALF, REST, PAIRS, PASSED, INTERLEAVED, INVERSE, BLOCK_H,
        )  # fmt: skip
    else:
        k_token = k_heads * head
        turn_heads(
            k_ptr, cos_ptr, sin_ptr, k_out_ptr, seq_len, k_heads, (block - q_blocks) * BLOCK_H,
            stride_kb, stride_ks, stride_kh, 1, k_token * seq_len, k_token, HEAD,
            stride_cb, stride_cs, stride_cb, stride_cs,
            HALF, REST, PAIRS, PASSED, INTERLEAVED, INVERSE, BLOCK_H,
        )  # fmt: skip


def launch_rotary(x, cos, sin, interleaved, out, blocks, inverse=False):
    """Write the turned `x` into `out`, whose last dimension is contiguous."""
    batch, seq_len, n_heads, head_dim = x.shape
    if x.numel() == 0:
        return
    rotary_kernel[(batch * seq_len, cdiv(n_heads, blocks["BLOCK_H"]))](
        x, cos, sin, out, seq_len, n_heads, *x.stride(), *out.stride()[:3], *_strides(cos), *_strides(sin),
        INVERSE=inverse, **_constants(cos.shape[-1], head_dim, interleaved, blocks),
    )  # fmt: skip


def launch_rotary_pair(q, k, cos, sin, interleaved, q_out, k_out, blocks, inverse=False):
    """Write the turned `q` and `k` into `q_out` and `k_out`, which are contiguous."""
    batch, seq_len, q_heads, head_dim = q.shape
    k_heads = k.shape[2]
    if q.numel() == 0 and k.numel() == 0:
        return
    BLOCK_H = blocks["BLOCK_H"]
    rotary_pair_kernel[(batch * seq_len, cdiv(q_heads, BLOCK_H) + cdiv(k_heads, BLOCK_H))](
        q, k, cos, sin, q_out, k_out, seq_len, q_heads, k_heads,
        *q.stride()[:3], *k.stride()[:3], *_strides(cos),
        INVERSE=inverse, **_constants(cos.shape[-1], head_dim, interleaved, blocks),
    )  # fmt: skip


def _strides(angles):
    """Return the strides of (batch, position) of cosines or sines, which may be the same for every sequence."""
    strides = angles.stride()
    return strides[:2] if len(strides) == 3 else (0, strides[0])


@functools.lru_cache(maxsize=1024)
def _constants(half, head_dim, interleaved, blocks):
    rest = head_dim - 2 * half
    return Blocks(
        HALF=half, REST=rest, PAIRS=next_power_of_2(half), PASSED=next_power_of_2(rest), INTERLEAVED=interleaved,
    ) | blocks  # fmt: skip


def launch_rotary_backward(dout, cos, sin, interleaved, dx, blocks):
    """Write the gradient of `x` into `dx`."""
    launch_rotary(dout, cos, sin, interleaved, dx, blocks, inverse=True)


def launch_rotary_pair_backward(dq_out, dk_out, cos, sin, interleaved, dq, dk, blocks):
    """Write the gradients of `q` and `k` into `dq` and `dk`."""
    launch_rotary_pair(dq_out, dk_out, cos, sin, interleaved, dq, dk, blocks, inverse=True)


class _Rotary(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, cos, sin, interleaved, blocks):
        ctx.save_for_backward(cos, sin)
        ctx.interleaved = interleaved
        return rotary_embedding(x, cos, sin, interleaved, blocks)

    @staticmethod
    @once_differentiable
    def backward(ctx, dout):
        return rotary_embedding_backward(dout, *ctx.saved_tensors, ctx.interleaved), None, None, None, None


class _RotaryPair(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, cos, sin, interleaved, blocks):
        ctx.save_for_backward(cos, sin)
        ctx.interleaved = interleaved
        return rotary_embedding_pair(q, k, cos, sin, interleaved, blocks)

    @staticmethod
    @once_differentiable
    def backward(ctx, dq_out, dk_out):
        dq_out, dk_out = dq_out.contiguous(), dk_out.contiguous()
        gradients = rotary_embedding_pair_backward(dq_out, dk_out, *ctx.saved_tensors, ctx.interleaved)
        return *gradients, None, None, None, None


def rotary_embedding(
    x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, interleaved: bool = False, blocks: Blocks | None = None
) -> torch.Tensor:
    """Return `x` turned by its positions, contiguous; differentiable in `x`.

    x         (batch, sequence, heads, head_dim), float32, float16 or bfloat16, any strides
    cos, sin  (sequence, R/2), or (batch, sequence, R/2) where positions differ by row, with 2 ≤ R ≤ head_dim; one
              dtype of the three, which may be float32 beside a narrower `x`; contiguous in the last dimension

    Raises `TypeError` for another dtype, `ValueError` for shapes, layouts or devices that do not fit, and where `cos`
    or `sin` would need a gradient.
    """
    check_rotary("rotary_embedding", "x", x, cos, sin)
    check_no_gradient("rotary_embedding", cos=cos, sin=sin)
    if differentiating(x):
        return _Rotary.apply(x, cos, sin, interleaved, blocks)
    out = contiguous_like(x)
    launch_rotary(x, cos, sin, interleaved, out, blocks or blocks_for("rotary_embedding", x))
    return out


def rotary_embedding_backward(
    dout: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, interleaved: bool = False, blocks: Blocks | None = None
) -> torch.Tensor:
    """Return the gradient of `x` for the gradient `dout` of the output: `dout` turned back. Operands as above."""
    check_rotary("rotary_embedding_backward", "dout", dout, cos, sin)
    dx = contiguous_like(dout)
    launch_rotary_backward(dout, cos, sin, interleaved, dx, blocks or blocks_for("rotary_embedding_backward", dout))
    return dx


def rotary_embedding_pair(
    q: torch.Tensor,
    k: torch.Tensor,
    cos: torch.Tensor,
    sin: torch.Tensor,
    interleaved: bool = False,
    blocks: Blocks | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return queries and keys turned by their positions, in one launch; each as `rotary_embedding` does.

    q, k      (batch, sequence, heads, head_dim), of one dtype, contiguous in the last dimension; their heads may differ
    cos, sin  as there, and of the same strides

    Raises like `rotary_embedding`.
    """
    check_rotary_pair("rotary_embedding_pair", q, k, cos, sin)
    check_no_gradient("rotary_embedding_pair", cos=cos, sin=sin)
    if differentiating(q, k):
        return _RotaryPair.apply(q, k, cos, sin, interleaved, blocks)
    q_out, k_out = contiguous_like(q), contiguous_like(k)
    blocks = blocks or blocks_for("rotary_embedding_pair", q)
    launch_rotary_pair(q, k, cos, sin, interleaved, q_out, k_out, blocks)
    return q_out, k_out


def rotary_embedding_pair_backward(
    dq_out: torch.Tensor,
    dk_out: torch.Tensor,
    cos: torch.Tensor,
    sin: torch.Tensor,
    interleaved: bool = False,
    blocks: Blocks | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the gradients of `q` and `k` for those of the outputs, which are turned back. Operands as above."""
    check_rotary_pair("rotary_embedding_pair_backward", dq_out, dk_out, cos, sin)
    dq, dk = contiguous_like(dq_out), contiguous_like(dk_out)
    blocks = blocks or blocks_for("rotary_embedding_pair", dq_out)
    launch_rotary_pair_backward(dq_out, dk_out, cos, sin, interleaved, dq, dk, blocks)
    return dq, dk


def angles(positions: torch.Tensor, rotary_dim: int, base: float = 10000.0) -> tuple[torch.Tensor, torch.Tensor]:
    """Return cos and sin (*positions.shape, rotary_dim / 2), float32, of θ = position · base^(-2i / rotary_dim)."""
    exponents = torch.arange(0, rotary_dim, 2, dtype=torch.float64, device=positions.device) / rotary_dim
    theta = positions[..., None].double() * base**-exponents
    return theta.cos().float(), theta.sin().float()


@once_per_layout
def check_rotary_pair(operator, q, k, cos, sin):
    check_device(operator, q=q, k=k, cos=cos, sin=sin)
    check_dtype(operator, FLOATS, q=q, k=k)
    check_shape(operator, q=(q, ("batch", "sequence", "heads", "head_dim")))
    check_shape(operator, k=(k, (*q.shape[:2], "heads", q.shape[3])))
    check_last_stride(operator, q=q, k=k)
    check_rotary(operator, "q", q, cos, sin)
    if sin.stride() != cos.stride():
        raise ValueError(f"{operator}: sin has strides {sin.stride()}; those of cos are taken, {cos.stride()}")


@once_per_layout
def check_rotary(operator, name, x, cos, sin):
    check_device(operator, **{name: x}, cos=cos, sin=sin)
    check_dtype(operator, FLOATS, **{name: x})
    check_dtype(operator, FLOATS, cos=cos, sin=sin)
    check_shape(operator, **{name: (x, ("batch", "sequence", "heads", "head_dim"))})
    positions = tuple(x.shape[1:2] if cos.ndim == 2 else x.shape[:2])
    check_shape(operator, cos=(cos, (*positions, "R/2")), sin=(sin, cos.shape))
    if not 2 <= 2 * cos.shape[-1] <= x.shape[-1]:
        raise ValueError(f"{operator}: R = {2 * cos.shape[-1]}; taken is 2 to the head dimension, {x.shape[-1]}")
    check_last_stride(operator, cos=cos, sin=sin)


def rotary_reference(x, cos, sin, interleaved=False):
    cos, sin = cos.unsqueeze(-2), sin.unsqueeze(-2)  # the same for every head
    half = cos.shape[-1]
    turned, rest = x[..., : 2 * half], x[..., 2 * half :]
    x1, x2 = (turned[..., 0::2], turned[..., 1::2]) if interleaved else (turned[..., :half], turned[..., half:])
    out1, out2 = x1 * cos - x2 * sin, x2 * cos + x1 * sin
    turned = torch.stack((out1, out2), -1).flatten(-2) if interleaved else torch.cat((out1, out2), -1)
    return torch.cat((turned, rest), -1).to(x.dtype)


def rotary_backward_reference(dout, cos, sin, interleaved=False):
    return rotary_reference(dout, cos, -sin, interleaved)


def rotary_pair_reference(q, k, cos, sin, interleaved=False):
    return rotary_reference(q, cos, sin, interleaved), rotary_reference(k, cos, sin, interleaved)


def _terms(x, cos, sin, interleaved=False):
    """Each output adds two products: turned by -θ the first of a pair is |x₁ cos| + |x₂ sin|, by θ the second."""
    turned = [rotary_reference(x.abs(), cos.abs(), s, interleaved) for s in (-sin.abs(), sin.abs())]
    return torch.maximum(*turned)


def _operands(batch, seq_len, heads, head_dim, rotary_dim=None, interleaved=False, by_row=False):
    def inputs(d: Draw):
        positions = d.integers(batch, seq_len, low=0, high=4096, dtype=torch.int64) if by_row else torch.arange(seq_len)
        cos, sin = angles(positions, rotary_dim or head_dim)
        return d.normal(batch, seq_len, heads, head_dim), cos, sin, interleaved

    return inputs


def _packed(d: Draw):
    """The queries of one projection (batch, sequence, 3, heads, head_dim): a view with strides of its own."""
    cos, sin = angles(torch.arange(7), 32)
    return d.normal(2, 7, 3, 4, 32)[:, :, 1], cos.to(d.dtype), sin.to(d.dtype), False


def _more_heads_than_a_block(d: Draw):
    return _operands(1, 3, d.blocks["BLOCK_H"] + 1, 16)(d)


SAMPLES = (
    Sample("0x4x2x8", _operands(0, 4, 2, 8)),
    Sample("1x1x1x2", _operands(1, 1, 1, 2)),
    Sample("2x5x3x21-rotary12", _operands(2, 5, 3, 21, rotary_dim=12), quick=True),
    Sample("2x5x3x10-interleaved", _operands(2, 5, 3, 10, interleaved=True)),
    Sample("2x4x4x64", _operands(2, 4, 4, 64)),
    Sample("3x4x2x16-by-row", _operands(3, 4, 2, 16, by_row=True)),
    Sample("1x3xblock-plus-1x16", _more_heads_than_a_block),
    Sample("2x7x4x32-packed", _packed),
    Sample("4x4096x32x128", _operands(4, 4096, 32, 128), bench=True),
)


def _with_keys(heads, inputs):
    """Return what draws queries by `inputs`, and keys of `heads` heads with them."""

    def pair(d: Draw):
        q, *rest = inputs(d)
        return q, d.normal(*q.shape[:2], heads(d) if callable(heads) else heads, q.shape[3]), *rest

    return pair


PAIR_SAMPLES = (
    Sample("0x4x2x8", _with_keys(2, _operands(0, 4, 2, 8))),
    Sample("1x1x1x2", _with_keys(1, _operands(1, 1, 1, 2))),
    Sample("2x5x3x21-rotary12", _with_keys(2, _operands(2, 5, 3, 21, rotary_dim=12)), quick=True),
    Sample("2x5x3x10-interleaved", _with_keys(3, _operands(2, 5, 3, 10, interleaved=True))),
    Sample("2x4x8x64", _with_keys(2, _operands(2, 4, 8, 64))),  # heads of queries share keys
    Sample("3x4x2x16-by-row", _with_keys(1, _operands(3, 4, 2, 16, by_row=True))),
    Sample("1x3xblock-plus-1x16", _with_keys(lambda d: 2 * d.blocks["BLOCK_H"] + 1, _more_heads_than_a_block)),
    Sample("2x7x4x32-packed", _with_keys(4, _packed)),
    Sample("4x4096x32x128", _with_keys(32, _operands(4, 4096, 32, 128)), bench=True),
)


def _cost(*operands):
    return Cost(bytes=sum(t.numel() * t.element_size() for t in operands if isinstance(t, torch.Tensor)))


_SHARED: dict[str, Any] = {
    "samples": SAMPLES,
    "dtypes": ("float32", "float16", "bfloat16"),
    "terms": _terms,
    "cost": _cost,
    "sweep": Sweep(
        powers_of_2(6, 13), lambda d, n: _operands(4, n, 32, 128)(d), "tokens of 4 sequences, 32 heads of 128"
    ),
    "blocks": Blocks(BLOCK_H=8, num_warps=4),
    "space": {"BLOCK_H": (1, 2, 4, 8, 16, 32), "num_warps": (1, 2, 4, 8)},
}

CASES = [
    KernelCase(
        name="rotary_embedding",
        operator=rotary_embedding,
        launch=launch_rotary,
        reference=rotary_reference,
        **_SHARED,
    ),
    KernelCase(
        name="rotary_embedding_backward",
        operator=rotary_embedding_backward,
        launch=launch_rotary_backward,
        reference=rotary_backward_reference,
        **_SHARED,
    ),
    KernelCase(
        name="rotary_embedding_pair",
        operator=rotary_embedding_pair,
        launch=launch_rotary_pair,
        reference=rotary_pair_reference,
        **_SHARED
        | {
            "samples": PAIR_SAMPLES,
            "terms": lambda q, k, *rest: (_terms(q, *rest), _terms(k, *rest)),
            "sweep": Sweep(
                powers_of_2(6, 13),
                lambda d, n: _with_keys(8, _operands(4, n, 32, 128))(d),
                "tokens of 4 sequences, 32 heads of 128 over 8",
            ),
        },
    ),
]
