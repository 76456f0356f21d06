"""Layer normalisation, linear layer and GELU in one kernel: y = gelu(layer_norm(x) @ weightᵀ + bias).

A program normalises its rows once, into scratch memory of its own, and then multiplies them as they lie: normalised on
the way into each tile of the product, they would pass through registers anew for every tile, and the matrix unit would
wait. Beside it stands the same in three launches, one an operator.
"""

import torch
import triton
import triton.language as tl

from portability.kernel import Blocks, Cost, Draw, KernelCase, Sample, Sweep, blocks_for, cdiv, powers_of_2
from portability.kernels.checks import (
    FLOATS,
    check_contiguous,
    check_device,
    check_dtype,
    check_last_stride,
    check_shape,
    differentiating,
    named,
    once_per_layout,
    rows_of,
)
from portability.kernels.elementwise import gelu, launch_elementwise
from portability.kernels.layer_norm import layer_norm
from portability.kernels.linear import linear


@triton.jit
def gelu_of(x):
    """x · Φ(x) in half of the instructions that `activate` takes, of which a tile's are more than their cache holds.

    1 - Φ(|x|) = erfc(|x| / √2) / 2 by formula 7.1.28 of Abramowitz and Stegun, erfc right to 3e-7, with 1 / √2 within
    the coefficients.
    """
    a = tl.abs(x)
    p = 4.88906e-5 + a * 5.383e-6
    p = 1.0 + a * (0.049867347 + a * (0.0211410061 + a * (0.0032776263 + a * (3.80036e-5 + a * p))))
    p *= p
    r = tl.rsqrt(p * p)
    r *= r
    r *= r
    beyond = 0.5 * r * r  # 1 / (2 · p¹⁶), without a division
    return x * tl.where(x < 0.0, beyond, 1.0 - beyond)


@triton.jit
def normalise_rows(
    x_ptr, gamma_ptr, beta_ptr, out_ptr, first, M, K, stride_xm, stride_om, eps,
    BLOCK_M: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """Write layer_norm of BLOCK_M rows of x from `first` on, and 0 from K to stride_om, a multiple of BLOCK_K.

    The moments are those of x - shift, shift being the first element of each row: (shift - mean)² is at most K · var,
    so that no more is lost to cancellation than a factor of K, where E[x²] - mean² would lose everything.
    """
    rows = (first + tl.arange(0, BLOCK_M)).to(tl.int64)[:, None]
    k = tl.arange(0, BLOCK_K)[None, :]
    x_ptrs = x_ptr + rows * stride_xm
    shift = tl.load(x_ptrs, mask=rows < M, other=0.0).to(tl.float32)
    sums = tl.zeros((BLOCK_M, BLOCK_K), tl.float32)
    squares = tl.zeros((BLOCK_M, BLOCK_K), tl.float32)
    for start in tl.range(0, K, BLOCK_K, num_stages=4):
        columns = start + k
        x = tl.load(x_ptrs + columns, mask=(rows < M) & (columns < K), other=0.0).to(tl.float32)
        x = tl.where(columns < K, x - shift, 0.0)
        sums += x
        squares += x * x
    mean = tl.sum(sums, axis=1, keep_dims=True) / K
    var = tl.maximum(tl.sum(squares, axis=1, keep_dims=True) / K - mean * mean, 0.0)
    mean += shift
    rstd = 1.0 / tl.sqrt(var + eps)
    out_ptrs = out_ptr + rows * stride_om
    for start in tl.range(0, K, BLOCK_K, num_stages=4):
        columns = start + k
        x = tl.load(x_ptrs + columns, mask=(rows < M) & (columns < K), other=0.0).to(tl.float32)
        gamma = tl.load(gamma_ptr + columns, mask=columns < K, other=0.0).to(tl.float32)
        beta = tl.load(beta_ptr + columns, mask=columns < K, other=0.0).to(tl.float32)
        normalised = (x - mean) * rstd * gamma + beta  # 0 past the end, where gamma and beta are
        tl.store(out_ptrs + columns, normalised.to(out_ptr.dtype.element_ty), mask=rows < M)


@triton.jit
def layer_norm_linear_gelu_kernel(
    x_ptr, gamma_ptr, beta_ptr, weight_ptr, bias_ptr, normalised_ptr, y_ptr, M, N, K,
    stride_xm, stride_wn, stride_wk, stride_nm, stride_ym, eps,
    PRECISION: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, TILES: tl.constexpr,
):  # fmt: skip
    """Each program takes BLOCK_M rows, normalises them, and computes TILES tiles of BLOCK_N columns of y.

    normalised (grid's second axis, M, stride_nm): scratch, of which a program reads what it wrote itself; stride_nm is
    K up to a multiple of BLOCK_K.
    """
    first = tl.program_id(0) * BLOCK_M
    normalised_ptr += tl.program_id(1).to(tl.int64) * M * stride_nm
    normalise_rows(x_ptr, gamma_ptr, beta_ptr, normalised_ptr, first, M, K, stride_xm, stride_nm, eps, BLOCK_M, BLOCK_K)
    tl.debug_barrier()  # what other threads of this program wrote is read from here on

    rows = (first + tl.arange(0, BLOCK_M)).to(tl.int64)[:, None]
    k = tl.arange(0, BLOCK_K)
    for tile in range(tl.program_id(1) * TILES, tl.minimum(tl.program_id(1) * TILES + TILES, tl.cdiv(N, BLOCK_N))):
        columns = (tile * BLOCK_N + tl.arange(0, BLOCK_N)).to(tl.int64)[None, :]
        normalised_ptrs = normalised_ptr + rows * stride_nm + k[None, :]
        weight_ptrs = weight_ptr + k[:, None].to(tl.int64) * stride_wk + columns * stride_wn
        step = tl.full((), BLOCK_K, tl.int64)  # 64 bits: a step along a stride may pass 2³¹
        accumulator = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for start in range(0, K, BLOCK_K):
            normalised = tl.load(normalised_ptrs, mask=rows < M, other=0.0)  # noqa: TP403 - rows of stride_nm
            weight = tl.load(weight_ptrs, mask=(k[:, None] < K - start) & (columns < N), other=0.0)
            accumulator = tl.dot(normalised, weight, accumulator, input_precision=PRECISION)
            normalised_ptrs += BLOCK_K
            weight_ptrs += step * stride_wk
        accumulator += tl.load(bias_ptr + columns, mask=columns < N, other=0.0).to(tl.float32)
        y = gelu_of(accumulator).to(y_ptr.dtype.element_ty)
        tl.store(y_ptr + rows * stride_ym + columns, y, mask=(rows < M) & (columns < N))


def launch_layer_norm_linear_gelu(x, gamma, beta, weight, bias, eps, y, blocks):
    """Write the result into `y`. Scratch memory takes as much as x for every TILES tiles of columns."""
    x, y = (rows_of("layer_norm_linear_gelu", name, t) for name, t in (("x", x), ("y", y)))
    (M, K), N = x.shape, weight.shape[0]
    if not M * N:
        return
    grid = (cdiv(M, blocks["BLOCK_M"]), cdiv(cdiv(N, blocks["BLOCK_N"]), blocks["TILES"]))
    padded = cdiv(K, blocks["BLOCK_K"]) * blocks["BLOCK_K"]
    normalised = torch.empty((grid[1], M, padded), dtype=x.dtype, device=x.device)
    layer_norm_linear_gelu_kernel[grid](
        x, gamma, beta, weight, bias, normalised, y, M, N, K,
        x.stride(0), *weight.stride(), padded, y.stride(0), eps, "ieee", **blocks,
    )  # fmt: skip


def layer_norm_linear_gelu(
    x: torch.Tensor, gamma: torch.Tensor, beta: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor,
    eps: float = 1e-5, blocks: Blocks | None = None,
) -> torch.Tensor:  # fmt: skip
    """Return gelu(layer_norm(x; gamma, beta, eps) @ weightᵀ + bias), contiguous; differentiable (in three launches).

    x: (..., K) with K of at least 1, contiguous in the last dimension, its leading dimensions one without a copy.
    gamma, beta: contiguous (K,). weight: (N, K), any strides. bias: contiguous (N,). All float32, float16 or bfloat16.
    Raises `ValueError` for shapes, layouts and devices that do not fit, `TypeError` for dtypes.
    """
    check_layer_norm_linear_gelu(x, gamma, beta, weight, bias)
    if differentiating(x, gamma, beta, weight, bias):
        return layer_norm_then_linear_then_gelu(x, gamma, beta, weight, bias, eps)
    y = torch.empty((*x.shape[:-1], weight.shape[0]), dtype=x.dtype, device=x.device)
    blocks = blocks or blocks_for("layer_norm_linear_gelu", x)
    launch_layer_norm_linear_gelu(x, gamma, beta, weight, bias, eps, y, blocks)
    return y


@once_per_layout
def check_layer_norm_linear_gelu(x, gamma, beta, weight, bias):
    tensors = {"x": x, "gamma": gamma, "beta": beta, "weight": weight, "bias": bias}
    check_device("layer_norm_linear_gelu", **tensors)
    check_dtype("layer_norm_linear_gelu", FLOATS, **tensors)
    features = x.shape[-1:]
    check_shape("layer_norm_linear_gelu", gamma=(gamma, features), beta=(beta, features))
    check_shape("layer_norm_linear_gelu", weight=(weight, ("N", *features)))
    check_shape("layer_norm_linear_gelu", bias=(bias, weight.shape[:1]))
    check_contiguous("layer_norm_linear_gelu", gamma=gamma, beta=beta, bias=bias)
    check_last_stride("layer_norm_linear_gelu", x=x)
    if not x.shape[-1]:
        raise ValueError(f"layer_norm_linear_gelu: x has shape {tuple(x.shape)}; at least one column is taken")
    rows_of("layer_norm_linear_gelu", "x", x)


def layer_norm_then_linear_then_gelu(x, gamma, beta, weight, bias, eps=1e-5, blocks=None):
    """Return what `layer_norm_linear_gelu` does, by the three operators, each with the blocks of its own table."""
    return gelu(linear(layer_norm(x, gamma, beta, eps), weight, bias))


def launch_layer_norm_then_linear_then_gelu(x, gamma, beta, weight, bias, eps, y, _blocks):
    """Write the same into `y`, by three launches; what passes between them is allocated, as it is without fusing."""
    z = linear(layer_norm(x, gamma, beta, eps), weight, bias)
    launch_elementwise("gelu", z, None, y, blocks_for("elementwise_gelu", y))


def _reference(x, gamma, beta, weight, bias, eps):
    normalised = torch.nn.functional.layer_norm(x, x.shape[-1:], gamma, beta, eps)
    return torch.nn.functional.gelu(torch.nn.functional.linear(normalised, weight, bias))


def _terms(x, gamma, beta, weight, bias, eps):
    """The terms of the normalised rows, as `layer_norm` has them, through the product and a GELU of slope 1.13."""
    rstd = torch.rsqrt(x.var(-1, correction=0, keepdim=True) + eps)
    normalised = 2 * (x.abs() + x.abs().mean(-1, keepdim=True)) * rstd * gamma.abs() + beta.abs()
    return 2 * torch.nn.functional.linear(normalised, weight.abs(), bias.abs())


def _layer(*shape, N, mean=0.0):
    def inputs(draw: Draw):
        K = shape[-1]
        weight = draw.normal(N, K, scale=K**-0.5)
        return draw.normal(*shape) + mean, draw.normal(K), draw.normal(K), weight, draw.normal(N), 1e-5

    return inputs


def _cost(x, gamma, beta, weight, bias, eps, y):
    flops = 2 * x.numel() * weight.shape[0]
    return Cost(sum(t.nbytes for t in (x, gamma, beta, weight, bias, y)), flops, named(x.dtype))


def _case(name, operator, launch, **more):
    return KernelCase(
        name=name,
        operator=operator,
        launch=launch,
        reference=_reference,
        terms=_terms,
        dtypes=tuple(map(named, FLOATS)),
        samples=(
            Sample("0x5x7", _layer(0, 5, N=7)),
            Sample("1x1x1", _layer(1, 1, N=1)),  # no variance: eps alone
            Sample("77x65x129", _layer(77, 65, N=129), quick=True),
            Sample("2x33x65x70", _layer(2, 33, 65, N=70)),
            Sample("64x64x64", _layer(64, 64, N=64)),
            Sample("33x300x70-mean-100", _layer(33, 300, N=70, mean=100.0)),
            Sample("33x300x70-mean-100000", _layer(33, 300, N=70, mean=1e5), dtypes=("float32",)),  # past float16
            Sample("8192x1024x4096", _layer(8192, 1024, N=4096), bench=True, dtypes=("float16", "bfloat16")),
        ),
        cost=_cost,
        sweep=Sweep(powers_of_2(4, 14), lambda draw, n: _layer(n, 1024, N=4096)(draw), "rows of 1024, 4096 wide after"),
        **more,
    )


CASES = [
    _case(
        "layer_norm_linear_gelu", layer_norm_linear_gelu, launch_layer_norm_linear_gelu,
        blocks=Blocks(BLOCK_M=64, BLOCK_N=64, BLOCK_K=32, TILES=4, num_warps=4, num_stages=2),
        space={
            "BLOCK_M": (32, 64, 128),
            "BLOCK_N": (32, 64, 128, 256),
            "BLOCK_K": (32, 64),
            "TILES": (1, 4, 16),
            "num_warps": (4, 8),
            "num_stages": (2, 3, 4),
        },
    ),
    _case(
        "layer_norm_then_linear_then_gelu", layer_norm_then_linear_then_gelu, launch_layer_norm_then_linear_then_gelu
    ),
]  # fmt: skip
