"""Root mean square normalisation over the last dimension: y = x · rstd · w, with rstd = 1 / sqrt(mean(x²) + eps).

Zhang and Sennrich, Root Mean Square Layer Normalization, 2019.
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
from portability.kernels.rms_norm_backward import rms_norm_backward
from portability.kernels.rows import long_rows, normal_rows, pieces_of_rows, row_sample, rows_apart, whole_rows


@triton.jit
def rms_norm_kernel(
    x_ptr, weight_ptr, y_ptr, rstd_ptr, M, N, stride_xm, stride_ym, eps,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """Each program takes BLOCK_M whole rows; BLOCK_N is N rounded up to a power of two."""
    rows = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    columns = tl.arange(0, BLOCK_N)[None, :]
    mask = (rows < M) & (columns < N)
    x = tl.load(x_ptr + rows * stride_xm + columns, mask=mask, other=0.0).to(tl.float32)
    rstd = 1.0 / tl.sqrt(tl.sum(x * x, axis=1, keep_dims=True) / N + eps)
    y = x * rstd
    if weight_ptr is not None:
        y *= tl.load(weight_ptr + columns, mask=columns < N, other=0.0).to(tl.float32)
    tl.store(y_ptr + rows * stride_ym + columns, y.to(y_ptr.dtype.element_ty), mask=mask)
    if rstd_ptr is not None:  # a pointer that is None is a constant: what it guards is not compiled
        tl.store(rstd_ptr + rows, rstd, mask=rows < M)


@triton.jit
def long_rms_norm_kernel(
    x_ptr, weight_ptr, y_ptr, rstd_ptr, N, stride_xm, stride_ym, eps,
    BLOCK_N: tl.constexpr,
):  # fmt: skip
    """Each program takes one row, BLOCK_N columns at a time."""
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * stride_xm
    y_ptr += row * stride_ym
    squares = tl.zeros((BLOCK_N,), tl.float32)
    for start in range(0, N, BLOCK_N):
        columns = start + tl.arange(0, BLOCK_N)
        x = tl.load(x_ptr + columns, mask=columns < N, other=0.0).to(tl.float32)
        squares += x * x
    rstd = 1.0 / tl.sqrt(tl.sum(squares, axis=0) / N + eps)
    n_blocks = tl.cdiv(N, BLOCK_N)
    for i in range(0, n_blocks):
        # From the end to the start: what was read last is still in the cache.
        columns = (n_blocks - 1 - i) * BLOCK_N + tl.arange(0, BLOCK_N)
        mask = columns < N
        y = tl.load(x_ptr + columns, mask=mask, other=0.0).to(tl.float32) * rstd
        if weight_ptr is not None:
            y *= tl.load(weight_ptr + columns, mask=mask, other=0.0).to(tl.float32)
        tl.store(y_ptr + columns, y.to(y_ptr.dtype.element_ty), mask=mask)
    if rstd_ptr is not None:
        tl.store(rstd_ptr + row, rstd)


def launch_rms_norm(x, weight, eps, y, rstd, blocks):
    """Write the result into `y`, and what the gradient needs into `rstd` unless it is None."""
    x, y = rows_of("rms_norm", "x", x), rows_of("rms_norm", "y", y)
    M, N = x.shape
    if not M * N:
        return
    operands = x, weight, y, rstd
    if blocks["ROW"] < N:
        options = pieces_of_rows(blocks)
        long_rms_norm_kernel[(M,)](*operands, N, x.stride(0), y.stride(0), eps, **options)
    else:
        options = whole_rows(N, blocks)
        grid = (cdiv(M, options["BLOCK_M"]),)
        rms_norm_kernel[grid](*operands, M, N, x.stride(0), y.stride(0), eps, **options)


def rms_norm(
    x: torch.Tensor, weight: torch.Tensor | None = None, eps: float = 1e-6, blocks: Blocks | None = None
) -> torch.Tensor:
    """Return x of (..., N) over the root mean square of its last dimension, times weight; contiguous; differentiable.

    x: float32, float16 or bfloat16, contiguous in the last dimension, its leading dimensions one without a copy.
    weight: contiguous (N,) of the dtype of x, or None.
    Raises `ValueError` for shapes, layouts and devices that do not fit, `TypeError` for dtypes.
    """
    if differentiating(x, weight):
        return _RMSNorm.apply(x, weight, eps, blocks)
    check_rms_norm(x, weight)
    y = contiguous_like(x)
    launch_rms_norm(x, weight, eps, y, None, blocks or blocks_for("rms_norm", x))
    return y


def rms_norm_with_rstd(
    x: torch.Tensor, weight: torch.Tensor | None = None, eps: float = 1e-6, blocks: Blocks | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return `rms_norm` of x, and rstd of each row: float32, of the leading dimensions of x."""
    check_rms_norm(x, weight)
    check_no_gradient("rms_norm_with_rstd", x=x, weight=weight)
    y = contiguous_like(x)
    rstd = torch.empty(x.shape[:-1], dtype=torch.float32, device=x.device)
    launch_rms_norm(x, weight, eps, y, rstd, blocks or blocks_for("rms_norm", x))
    return y, rstd


@once_per_layout
def check_rms_norm(x, weight):
    check_device("rms_norm", x=x, weight=weight)
    check_dtype("rms_norm", FLOATS, x=x, weight=weight)
    check_shape("rms_norm", weight=(weight, x.shape[-1:]))
    check_contiguous("rms_norm", weight=weight)
    check_last_stride("rms_norm", x=x)
    rows_of("rms_norm", "x", x)


class _RMSNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, eps, blocks):
        y, rstd = rms_norm_with_rstd(x, weight, eps, blocks)
        ctx.save_for_backward(x, weight, rstd)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx, dy):
        return *rms_norm_backward(dy.contiguous(), *ctx.saved_tensors), None, None


def _reference(x, weight, eps):
    rstd = torch.rsqrt((x * x).mean(-1) + eps)
    y = x * rstd[..., None]
    return y if weight is None else y * weight, rstd


def _chain(x, weight, eps):
    """As models write it: the squares of float16 overflow from 256 on, so they are made in float32."""
    rstd = torch.rsqrt(x.float().square().mean(-1) + eps)
    y = (x.float() * rstd[..., None]).to(x.dtype)
    return y if weight is None else y * weight, rstd


def _terms(x, weight, eps):
    y, rstd = _reference(x.abs(), None if weight is None else weight.abs(), eps)
    return 2 * y, 2 * rstd


def _with_weight(rows):
    def inputs(draw: Draw):
        x = rows(draw)
        return x, draw.normal(x.shape[-1]), 1e-6

    return inputs


CASE = KernelCase(
    name="rms_norm",
    operator=rms_norm_with_rstd,
    launch=launch_rms_norm,
    reference=_reference,
    chain=_chain,
    terms=_terms,
    torch=lambda x, weight, eps: torch.nn.functional.rms_norm(x, x.shape[-1:], weight, eps),
    dtypes=tuple(map(named, FLOATS)),
    samples=(
        Sample("0x5", _with_weight(normal_rows(0, 5))),
        Sample("1x1", _with_weight(normal_rows(1, 1))),
        Sample("3x9-zero", lambda draw: (draw.normal(3, 9) * 0, draw.normal(9), 1e-6)),  # eps alone
        Sample("7x781", _with_weight(normal_rows(7, 781)), quick=True),
        Sample("130x16", _with_weight(normal_rows(130, 16))),  # several rows a program
        Sample("2x3x64", _with_weight(normal_rows(2, 3, 64))),
        Sample("9x65-apart", _with_weight(rows_apart)),
        Sample("7x781-mean-300", _with_weight(normal_rows(7, 781, mean=300.0))),  # float16 squares would overflow
        Sample("7x781-plain", lambda draw: (draw.normal(7, 781), None, 1e-6)),
        Sample("row-minus-1", _with_weight(row_sample(-1))),
        Sample("row", _with_weight(row_sample(0))),
        Sample("row-plus-1", _with_weight(row_sample(1))),
        Sample("long-mean-100", _with_weight(long_rows)),
        Sample("long-large", _with_weight(lambda draw: 1e5 * row_sample(1)(draw)), dtypes=("float32",)),  # past float16
        Sample("long-zero", lambda draw: (0 * row_sample(1)(draw), None, 1e-6)),  # eps alone
        Sample("16384x4096", _with_weight(normal_rows(16384, 4096)), bench=True),
    ),
    blocks=Blocks(ROW=8192, TILE=2048, BLOCK_N=4096, num_warps=8, num_stages=2),
    space={
        "ROW": (4096, 8192, 16384),
        "TILE": (1024, 2048, 4096, 8192),
        "BLOCK_N": (2048, 4096, 8192),
        "num_warps": (4, 8, 16),
        "num_stages": (1, 2, 3),
    },
    cost=lambda x, weight, eps, y, rstd: Cost(x.nbytes + y.nbytes, 4 * x.numel()),
    sweep=Sweep(powers_of_2(6, 15), lambda draw, n: _with_weight(normal_rows(4096, n))(draw), "columns of 4096 rows"),
)
