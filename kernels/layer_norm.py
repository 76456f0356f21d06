"""Layer normalisation over the last dimension: y = x̂ · w + b, with x̂ = (x - mean) · rstd, rstd = 1 / sqrt(var + eps).

mean and var are those of each row, var the biased one (Ba, Kiros and Hinton, Layer Normalization, 2016).
"""

import torch
import triton
import triton.language as tl
from torch.autograd.function import once_differentiable

from portability.kernel import Blocks, Cost, Draw, KernelCase, Sample, Sweep, blocks_for, cdiv, powers_of_2
from portability.kernels.checks import (
    FLOATS,
    check_contiguous,
    check_device,
    check_dtype,
    check_last_stride,
    check_no_gradient,
    check_shape,
    contiguous_like,
    differentiating,
    named,
    once_per_layout,
    rows_of,
)
from portability.kernels.layer_norm_backward import layer_norm_backward
from portability.kernels.rows import long_rows, normal_rows, pieces_of_rows, row_sample, rows_apart, whole_rows


@triton.jit
def layer_norm_kernel(
    x_ptr, weight_ptr, bias_ptr, y_ptr, mean_ptr, rstd_ptr, M, N, stride_xm, stride_ym, eps,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """Each program takes BLOCK_M whole rows; BLOCK_N is N rounded up to a power of two.

    A pointer that is None is a constant: what it guards is not compiled.
    """
    rows = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    columns = tl.arange(0, BLOCK_N)[None, :]
    mask = (rows < M) & (columns < N)
    x = tl.load(x_ptr + rows * stride_xm + columns, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=1, keep_dims=True) / N
    deviation = tl.where(columns < N, x - mean, 0.0)  # past the end x - mean is not 0
    var = tl.sum(deviation * deviation, axis=1, keep_dims=True) / N
    rstd = 1.0 / tl.sqrt(var + eps)
    y = deviation * rstd
    if weight_ptr is not None:
        y *= tl.load(weight_ptr + columns, mask=columns < N, other=0.0).to(tl.float32)
    if bias_ptr is not None:
        y += tl.load(bias_ptr + columns, mask=columns < N, other=0.0).to(tl.float32)
    tl.store(y_ptr + rows * stride_ym + columns, y.to(y_ptr.dtype.element_ty), mask=mask)
    if mean_ptr is not None:
        tl.store(mean_ptr + rows, mean, mask=rows < M)
        tl.store(rstd_ptr + rows, rstd, mask=rows < M)


@triton.jit
def long_layer_norm_kernel(
    x_ptr, weight_ptr, bias_ptr, y_ptr, mean_ptr, rstd_ptr, N, stride_xm, stride_ym, eps,
    BLOCK_N: tl.constexpr,
):  # fmt: skip
    """Each program takes one row, BLOCK_N columns at a time.

    The moments of what was read, of a columns, and of the next block, of b, are joined (Chan, Golub and LeVeque, 1983),
    since E[x²] - mean² would cancel. With δ the difference of their means and M₂ a sum of squared deviations,

        mean = mean_a + δ · b / (a + b),  M₂ = M₂_a + M₂_b + δ² · a · b / (a + b)
    """
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * stride_xm
    y_ptr += row * stride_ym
    mean = 0.0
    m2 = 0.0  # sum of squared deviations from the mean so far
    for start in range(0, N, BLOCK_N):
        columns = start + tl.arange(0, BLOCK_N)
        x = tl.load(x_ptr + columns, mask=columns < N, other=0.0).to(tl.float32)
        n = tl.minimum(N - start, BLOCK_N).to(tl.float32)
        block_mean = tl.sum(x, axis=0) / n
        deviation = tl.where(columns < N, x - block_mean, 0.0)
        delta = block_mean - mean
        share = n / (start + n)  # of this block in all columns so far
        mean += delta * share
        m2 += tl.sum(deviation * deviation, axis=0) + delta * delta * start * share
    rstd = 1.0 / tl.sqrt(m2 / N + eps)
    n_blocks = tl.cdiv(N, BLOCK_N)
    for i in range(0, n_blocks):
        # From the end to the start: what was read last is still in the cache.
        columns = (n_blocks - 1 - i) * BLOCK_N + tl.arange(0, BLOCK_N)
        mask = columns < N
        y = (tl.load(x_ptr + columns, mask=mask, other=0.0).to(tl.float32) - mean) * rstd
        if weight_ptr is not None:
            y *= tl.load(weight_ptr + columns, mask=mask, other=0.0).to(tl.float32)
        if bias_ptr is not None:
            y += tl.load(bias_ptr + columns, mask=mask, other=0.0).to(tl.float32)
        tl.store(y_ptr + columns, y.to(y_ptr.dtype.element_ty), mask=mask)
    if mean_ptr is not None:
        tl.store(mean_ptr + row, mean)
        tl.store(rstd_ptr + row, rstd)


def launch_layer_norm(x, weight, bias, eps, y, mean, rstd, blocks):
    """Write the result into `y`, and the moments that a gradient needs into `mean` and `rstd` unless they are None."""
    x, y = rows_of("layer_norm", "x", x), rows_of("layer_norm", "y", y)
    M, N = x.shape
    if not M * N:
        return
    operands = (x, weight, bias, y, mean, rstd)
    if blocks["ROW"] < N:
        options = pieces_of_rows(blocks)
        long_layer_norm_kernel[(M,)](*operands, N, x.stride(0), y.stride(0), eps, **options)
    else:
        options = whole_rows(N, blocks)
        grid = (cdiv(M, options["BLOCK_M"]),)
        layer_norm_kernel[grid](*operands, M, N, x.stride(0), y.stride(0), eps, **options)


def layer_norm(
    x: torch.Tensor, weight: torch.Tensor | None = None, bias: torch.Tensor | None = None, eps: float = 1e-5,
    blocks: Blocks | None = None,
) -> torch.Tensor:  # fmt: skip
    """Return x of (..., N) normalised over its last dimension, times weight plus bias; contiguous; differentiable.

    x: float32, float16 or bfloat16, contiguous in the last dimension, its leading dimensions one without a copy.
    weight, bias: contiguous (N,) of the dtype of x, or None.
    Raises `ValueError` for shapes, layouts and devices that do not fit, `TypeError` for dtypes.
    """
    if differentiating(x, weight, bias):
        return _LayerNorm.apply(x, weight, bias, eps, blocks)
    check_layer_norm(x, weight, bias)
    y = contiguous_like(x)
    launch_layer_norm(x, weight, bias, eps, y, None, None, blocks or blocks_for("layer_norm", x))
    return y


def layer_norm_with_moments(
    x: torch.Tensor, weight: torch.Tensor | None = None, bias: torch.Tensor | None = None, eps: float = 1e-5,
    blocks: Blocks | None = None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:  # fmt: skip
    """Return `layer_norm` of x, and mean and rstd of each row: float32, of the leading dimensions of x."""
    check_layer_norm(x, weight, bias)
    check_no_gradient("layer_norm_with_moments", x=x, weight=weight, bias=bias)
    y = contiguous_like(x)
    mean, rstd = (torch.empty(x.shape[:-1], dtype=torch.float32, device=x.device) for _ in range(2))
    launch_layer_norm(x, weight, bias, eps, y, mean, rstd, blocks or blocks_for("layer_norm", x))
    return y, mean, rstd


@once_per_layout
def check_layer_norm(x, weight, bias):
    check_device("layer_norm", x=x, weight=weight, bias=bias)
    check_dtype("layer_norm", FLOATS, x=x, weight=weight, bias=bias)
    check_shape("layer_norm", weight=(weight, x.shape[-1:]), bias=(bias, x.shape[-1:]))
    check_contiguous("layer_norm", weight=weight, bias=bias)
    check_last_stride("layer_norm", x=x)
    rows_of("layer_norm", "x", x)


class _LayerNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, bias, eps, blocks):
        y, mean, rstd = layer_norm_with_moments(x, weight, bias, eps, blocks)
        ctx.save_for_backward(x, weight, bias, mean, rstd)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx, dy):
        return *layer_norm_backward(dy.contiguous(), *ctx.saved_tensors), None, None


def _reference(x, weight, bias, eps):
    mean = x.mean(-1)
    rstd = torch.rsqrt(x.var(-1, correction=0) + eps)
    return torch.nn.functional.layer_norm(x, x.shape[-1:], weight, bias, eps), mean, rstd


def _terms(x, weight, bias, eps):
    """x - mean loses what both have in common: an error is relative to |x| + |mean|, not to the difference."""
    _, _, rstd = _reference(x, weight, bias, eps)
    magnitude = x.abs().mean(-1)
    relative = (x.abs() + magnitude[..., None]) * rstd[..., None]
    w = 1.0 if weight is None else weight.abs()
    b = 0.0 if bias is None else bias.abs()
    return relative * 2 * w + b, magnitude, rstd * (1 + magnitude * rstd)


def _with_affine(rows):
    def inputs(draw: Draw):
        x = rows(draw)
        return x, draw.normal(x.shape[-1]), draw.normal(x.shape[-1]), 1e-5

    return inputs


CASE = KernelCase(
    name="layer_norm",
    operator=layer_norm_with_moments,
    launch=launch_layer_norm,
    reference=_reference,
    terms=_terms,
    torch=lambda x, weight, bias, eps: torch.nn.functional.layer_norm(x, x.shape[-1:], weight, bias, eps),
    dtypes=tuple(map(named, FLOATS)),
    samples=(
        Sample("0x5", _with_affine(normal_rows(0, 5))),
        Sample("1x1", _with_affine(normal_rows(1, 1))),  # no variance: eps alone
        Sample("7x781", _with_affine(normal_rows(7, 781)), quick=True),
        Sample("130x16", _with_affine(normal_rows(130, 16))),  # several rows a program
        Sample("2x3x64", _with_affine(normal_rows(2, 3, 64))),
        Sample("9x65-apart", _with_affine(rows_apart)),
        Sample("7x781-mean-100", _with_affine(normal_rows(7, 781, mean=100.0))),  # E[x²] - mean² would cancel
        Sample("7x781-plain", lambda draw: (draw.normal(7, 781), None, None, 1e-5)),
        Sample("7x781-no-bias", lambda draw: (draw.normal(7, 781), draw.normal(781), None, 1e-5)),
        Sample("row-minus-1", _with_affine(row_sample(-1))),
        Sample("row", _with_affine(row_sample(0))),
        Sample("row-plus-1", _with_affine(row_sample(1))),
        Sample("long-mean-100", _with_affine(long_rows)),
        Sample("1x70000", _with_affine(normal_rows(1, 70000))),  # more columns than float16 can count
        Sample("16384x4096", _with_affine(normal_rows(16384, 4096)), bench=True),
    ),
    blocks=Blocks(ROW=8192, TILE=2048, BLOCK_N=4096, num_warps=8, num_stages=2),
    space={
        "ROW": (4096, 8192, 16384),
        "TILE": (1024, 2048, 4096, 8192),
        "BLOCK_N": (2048, 4096, 8192),
        "num_warps": (4, 8, 16),
        "num_stages": (1, 2, 3),
    },
    cost=lambda x, weight, bias, eps, y, mean, rstd: Cost(x.nbytes + y.nbytes, 8 * x.numel()),
    sweep=Sweep(powers_of_2(6, 15), lambda draw, n: _with_affine(normal_rows(4096, n))(draw), "columns of 4096 rows"),
)
