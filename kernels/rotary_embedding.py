"""Rotary position embedding (Su et al., RoFormer, 2021): each pair of features turns by an angle θ of its position.

    out₁ = x₁ · cos θ - x₂ · sin θ
    out₂ = x₂ · cos θ + x₁ · sin θ

A pair is (x[i], x[i + R/2]) (the halves of GPT-NeoX and Llama) or (x[2i], x[2i + 1]) (interleaved, as in the paper).
Features from R on stay as they are. A rotation's gradient is the rotation by -θ: one kernel serves both ways.
"""

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
    differentiating,
)


@triton.jit
def rotary_kernel(
    x_ptr, cos_ptr, sin_ptr, out_ptr, seq_len, n_heads,
    stride_xb, stride_xs, stride_xh, stride_xd, stride_ob, stride_os, stride_oh,
    stride_cb, stride_cs, stride_sb, stride_ss,
    HALF: tl.constexpr, REST: tl.constexpr, PAIRS: tl.constexpr, PASSED: tl.constexpr,
    INTERLEAVED: tl.constexpr, INVERSE: tl.constexpr, BLOCK_H: tl.constexpr,
):  # fmt: skip
    """Each program turns BLOCK_H heads of one token by the HALF angles of its position."""
    batch = (tl.program_id(0) // seq_len).to(tl.int64)
    position = (tl.program_id(0) % seq_len).to(tl.int64)
    heads = tl.program_id(1) * BLOCK_H + tl.arange(0, BLOCK_H)
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


def launch_rotary(x, cos, sin, interleaved, out, blocks, inverse=False):
    """Write the turned `x` into `out`, whose last dimension is contiguous."""
    batch, seq_len, n_heads, head_dim = x.shape
    if x.numel() == 0:
        return
    half = cos.shape[-1]
    rest = head_dim - 2 * half
    cos, sin = (t.expand(batch, seq_len, half) for t in (cos, sin))
    rotary_kernel[(batch * seq_len, cdiv(n_heads, blocks["BLOCK_H"]))](
        x, cos, sin, out, seq_len, n_heads,
        *x.stride(), *out.stride()[:3], *cos.stride()[:2], *sin.stride()[:2],
        HALF=half, REST=rest, PAIRS=next_power_of_2(half), PASSED=next_power_of_2(rest),
        INTERLEAVED=interleaved, INVERSE=inverse, **blocks,
    )  # fmt: skip


def launch_rotary_backward(dout, cos, sin, interleaved, dx, blocks):
    """Write the gradient of `x` into `dx`."""
    launch_rotary(dout, cos, sin, interleaved, dx, blocks, inverse=True)


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
    _check("rotary_embedding", "x", x, cos, sin)
    check_no_gradient("rotary_embedding", cos=cos, sin=sin)
    if differentiating(x):
        return _Rotary.apply(x, cos, sin, interleaved, blocks)
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    launch_rotary(x, cos, sin, interleaved, out, blocks or blocks_for("rotary_embedding", x))
    return out


def rotary_embedding_backward(
    dout: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, interleaved: bool = False, blocks: Blocks | None = None
) -> torch.Tensor:
    """Return the gradient of `x` for the gradient `dout` of the output: `dout` turned back. Operands as above."""
    _check("rotary_embedding_backward", "dout", dout, cos, sin)
    dx = torch.empty(dout.shape, dtype=dout.dtype, device=dout.device)
    launch_rotary_backward(dout, cos, sin, interleaved, dx, blocks or blocks_for("rotary_embedding_backward", dout))
    return dx


def angles(positions: torch.Tensor, rotary_dim: int, base: float = 10000.0) -> tuple[torch.Tensor, torch.Tensor]:
    """Return cos and sin (*positions.shape, rotary_dim / 2), float32, of θ = position · base^(-2i / rotary_dim)."""
    exponents = torch.arange(0, rotary_dim, 2, dtype=torch.float64, device=positions.device) / rotary_dim
    theta = positions[..., None].double() * base**-exponents
    return theta.cos().float(), theta.sin().float()


def _check(operator, name, x, cos, sin):
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


def _cost(x, cos, sin, _interleaved, out):
    return Cost(bytes=(x.numel() + out.numel()) * x.element_size() + (cos.numel() + sin.numel()) * cos.element_size())


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
]
