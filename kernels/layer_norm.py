"""Layer normalisation over the last dimension: y = x̂ · w + b, with x̂ = (x - mean) · rstd, rstd = 1 / sqrt(var + eps).

mean and var are those of each row, var the biased one (Ba, Kiros and Hinton, Layer Normalization, 2016). With
g = dy · w and means over a row, the gradients are

    dx = rstd · (g - mean(g) - x̂ · mean(g · x̂))
    dw = Σ dy · x̂ over the rows
    db = Σ dy     over the rows

The two sums are made in two stages, so that they come out the same each time: every program sums the rows that it
has, and a second kernel sums what the programs found.
"""

import torch
import triton
import triton.language as tl
from torch.autograd.function import once_differentiable

from portability.kernel import Blocks, Cost, Draw, KernelCase, Sample, blocks_for, cdiv, next_power_of_2
from portability.kernels.checks import (
    FLOATS,
    check_contiguous,
    check_device,
    check_dtype,
    check_shape,
    differentiating,
    named,
    rows_of,
)


@triton.jit
def layer_norm_kernel(
    x_ptr, weight_ptr, bias_ptr, y_ptr, mean_ptr, rstd_ptr, M, N, stride_xm, stride_ym, eps,
    HAS_WEIGHT: tl.constexpr, HAS_BIAS: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """Each program takes BLOCK_M whole rows; BLOCK_N is N rounded up to a power of two."""
    rows = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    columns = tl.arange(0, BLOCK_N)[None, :]
    mask = (rows < M) & (columns < N)
    x = tl.load(x_ptr + rows * stride_xm + columns, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=1, keep_dims=True) / N
    deviation = tl.where(columns < N, x - mean, 0.0)  # past the end x - mean is not 0
    var = tl.sum(deviation * deviation, axis=1, keep_dims=True) / N
    rstd = 1.0 / tl.sqrt(var + eps)
    y = deviation * rstd
    if HAS_WEIGHT:
        y *= tl.load(weight_ptr + columns, mask=columns < N, other=0.0).to(tl.float32)
    if HAS_BIAS:
        y += tl.load(bias_ptr + columns, mask=columns < N, other=0.0).to(tl.float32)
    tl.store(y_ptr + rows * stride_ym + columns, y.to(y_ptr.dtype.element_ty), mask=mask)
    tl.store(mean_ptr + rows, mean, mask=rows < M)
    tl.store(rstd_ptr + rows, rstd, mask=rows < M)


@triton.jit
def long_layer_norm_kernel(
    x_ptr, weight_ptr, bias_ptr, y_ptr, mean_ptr, rstd_ptr, N, stride_xm, stride_ym, eps,
    HAS_WEIGHT: tl.constexpr, HAS_BIAS: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """Each program takes one row, BLOCK_N columns at a time.

    The moments of the blocks are joined pairwise (Chan, Golub and LeVeque, 1983): E[x²] - mean² would cancel.
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
        if HAS_WEIGHT:
            y *= tl.load(weight_ptr + columns, mask=mask, other=0.0).to(tl.float32)
        if HAS_BIAS:
            y += tl.load(bias_ptr + columns, mask=mask, other=0.0).to(tl.float32)
        tl.store(y_ptr + columns, y.to(y_ptr.dtype.element_ty), mask=mask)
    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, rstd)


@triton.jit
def layer_norm_backward_kernel(
    dy_ptr, x_ptr, weight_ptr, mean_ptr, rstd_ptr, dx_ptr, dw_part_ptr, db_part_ptr, M, N,
    stride_dym, stride_xm, stride_dxm, rows_per_program,
    HAS_WEIGHT: tl.constexpr, HAS_BIAS: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """Each program takes its share of the rows, BLOCK_M whole ones at a time, and keeps its part of dw and db."""
    program = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK_N)[None, :]
    within = columns < N
    if HAS_WEIGHT:
        weight = tl.load(weight_ptr + columns, mask=within, other=0.0).to(tl.float32)
    dw = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    db = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    first = program * rows_per_program
    last = tl.minimum(first + rows_per_program, M)
    for start in range(first, last, BLOCK_M):
        rows = start + tl.arange(0, BLOCK_M)[:, None]
        mask = (rows < last) & within
        dy = tl.load(dy_ptr + rows * stride_dym + columns, mask=mask, other=0.0).to(tl.float32)
        x = tl.load(x_ptr + rows * stride_xm + columns, mask=mask, other=0.0).to(tl.float32)
        mean = tl.load(mean_ptr + rows, mask=rows < last, other=0.0)
        rstd = tl.load(rstd_ptr + rows, mask=rows < last, other=0.0)
        x_hat = tl.where(mask, (x - mean) * rstd, 0.0)
        g = dy
        if HAS_WEIGHT:
            g = dy * weight
            dw += dy * x_hat
        if HAS_BIAS:
            db += dy
        mean_g = tl.sum(g, axis=1, keep_dims=True) / N
        mean_gx = tl.sum(g * x_hat, axis=1, keep_dims=True) / N
        dx = rstd * (g - mean_g - x_hat * mean_gx)
        tl.store(dx_ptr + rows * stride_dxm + columns, dx.to(dx_ptr.dtype.element_ty), mask=mask)
    columns = tl.arange(0, BLOCK_N)
    if HAS_WEIGHT:
        tl.store(dw_part_ptr + program * N + columns, tl.sum(dw, axis=0), mask=columns < N)
    if HAS_BIAS:
        tl.store(db_part_ptr + program * N + columns, tl.sum(db, axis=0), mask=columns < N)


@triton.jit
def long_layer_norm_backward_kernel(
    dy_ptr, x_ptr, weight_ptr, mean_ptr, rstd_ptr, dx_ptr, dw_part_ptr, db_part_ptr, M, N,
    stride_dym, stride_xm, stride_dxm,
    HAS_WEIGHT: tl.constexpr, HAS_BIAS: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """The same for rows that no program can hold: BLOCK_M rows, twice over their columns, BLOCK_N at a time."""
    program = tl.program_id(0).to(tl.int64)
    rows = program * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    dy_ptrs, x_ptrs, dx_ptrs = dy_ptr + rows * stride_dym, x_ptr + rows * stride_xm, dx_ptr + rows * stride_dxm
    mean = tl.load(mean_ptr + rows, mask=rows < M, other=0.0)
    rstd = tl.load(rstd_ptr + rows, mask=rows < M, other=0.0)
    sum_g = tl.zeros((BLOCK_M, 1), tl.float32)
    sum_gx = tl.zeros((BLOCK_M, 1), tl.float32)
    for start in range(0, N, BLOCK_N):
        columns = start + tl.arange(0, BLOCK_N)[None, :]
        mask = (rows < M) & (columns < N)
        g = tl.load(dy_ptrs + columns, mask=mask, other=0.0).to(tl.float32)
        x = tl.load(x_ptrs + columns, mask=mask, other=0.0).to(tl.float32)
        if HAS_WEIGHT:
            g *= tl.load(weight_ptr + columns, mask=columns < N, other=0.0).to(tl.float32)
        sum_g += tl.sum(g, axis=1, keep_dims=True)
        sum_gx += tl.sum(g * (x - mean) * rstd, axis=1, keep_dims=True)  # g is 0 where x is masked
    n_blocks = tl.cdiv(N, BLOCK_N)
    for i in range(0, n_blocks):
        # From the end to the start: what was read last is still in the cache.
        offsets = (n_blocks - 1 - i) * BLOCK_N + tl.arange(0, BLOCK_N)
        columns = offsets[None, :]
        mask = (rows < M) & (columns < N)
        dy = tl.load(dy_ptrs + columns, mask=mask, other=0.0).to(tl.float32)
        x = tl.load(x_ptrs + columns, mask=mask, other=0.0).to(tl.float32)
        x_hat = (x - mean) * rstd
        g = dy
        if HAS_WEIGHT:
            g = dy * tl.load(weight_ptr + columns, mask=columns < N, other=0.0).to(tl.float32)
            tl.store(dw_part_ptr + program * N + offsets, tl.sum(dy * x_hat, axis=0), mask=offsets < N)
        if HAS_BIAS:
            tl.store(db_part_ptr + program * N + offsets, tl.sum(dy, axis=0), mask=offsets < N)
        dx = rstd * (g - sum_g / N - x_hat * (sum_gx / N))
        tl.store(dx_ptrs + columns, dx.to(dx_ptr.dtype.element_ty), mask=mask)


@triton.jit
def column_sum_kernel(part_ptr, out_ptr, P, N, BLOCK_P: tl.constexpr, BLOCK_N: tl.constexpr):
    """The second stage: out = Σ part over its P rows, for BLOCK_N columns."""
    columns = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    total = tl.zeros((BLOCK_P, BLOCK_N), tl.float32)
    for start in range(0, P, BLOCK_P):
        rows = start + tl.arange(0, BLOCK_P).to(tl.int64)[:, None]
        mask = (rows < P) & (columns[None, :] < N)
        total += tl.load(part_ptr + rows * N + columns[None, :], mask=mask, other=0.0)
    tl.store(out_ptr + columns, tl.sum(total, axis=0).to(out_ptr.dtype.element_ty), mask=columns < N)


def column_sum(part, out):
    """Write the sum of the rows of `part`, float32 (P, N), into `out` of (N,)."""
    P, N = part.shape
    column_sum_kernel[(cdiv(N, 64),)](part, out, P, N, BLOCK_P=32, BLOCK_N=64)


def tile(N, blocks):
    """Return BLOCK_M, BLOCK_N and num_warps for programs that hold whole rows of N: several, where they are short."""
    BLOCK_N = next_power_of_2(N)
    BLOCK_M = max(1, blocks["TILE"] // BLOCK_N)
    num_warps = min(blocks["num_warps"], max(1, BLOCK_M * BLOCK_N // 512))  # 16 elements a thread, at the least
    return {"BLOCK_M": BLOCK_M, "BLOCK_N": BLOCK_N, "num_warps": num_warps}


def launch_layer_norm(x, weight, bias, eps, y, mean, rstd, blocks):
    """Write the result into `y`, and the moments that the gradient needs into `mean` and `rstd`."""
    x, y = rows_of("layer_norm", "x", x), rows_of("layer_norm", "y", y)
    M, N = x.shape
    if not M * N:
        return
    given = {"HAS_WEIGHT": weight is not None, "HAS_BIAS": bias is not None}
    operands = (x, weight, bias, y, mean, rstd)
    if blocks["ROW"] < N:
        options = {k: blocks[k] for k in ("BLOCK_N", "num_warps", "num_stages")}
        long_layer_norm_kernel[(M,)](*operands, N, x.stride(0), y.stride(0), eps, **given, **options)
    else:
        options = tile(N, blocks)
        grid = (cdiv(M, options["BLOCK_M"]),)
        layer_norm_kernel[grid](*operands, M, N, x.stride(0), y.stride(0), eps, **given, **options)


def launch_layer_norm_backward(dy, x, weight, bias, mean, rstd, dx, dw, db, blocks):
    """Write the gradients into `dx`, `dw` and `db`; allocates the parts of the two sums."""
    dy, x, dx = (rows_of("layer_norm_backward", n, t) for n, t in (("dy", dy), ("x", x), ("dx", dx)))
    M, N = x.shape
    if not M * N:
        for sum_of_nothing in (dw, db):
            if sum_of_nothing is not None:
                sum_of_nothing.zero_()
        return
    whole = blocks["ROW"] >= N
    options = tile(N, blocks) if whole else {k: blocks[k] for k in ("BLOCK_N", "num_warps", "num_stages")}
    rows_per_program = cdiv(M, blocks["PROGRAMS"]) if whole else blocks["ROWS"]
    programs = cdiv(M, rows_per_program)
    dw_part, db_part = (None if d is None else x.new_empty((programs, N), dtype=torch.float32) for d in (dw, db))
    operands = (dy, x, weight, mean, rstd, dx, dw_part, db_part, M, N, dy.stride(0), x.stride(0), dx.stride(0))
    given = {"HAS_WEIGHT": weight is not None, "HAS_BIAS": bias is not None}
    if whole:
        layer_norm_backward_kernel[(programs,)](*operands, rows_per_program, **given, **options)
    else:
        long_layer_norm_backward_kernel[(programs,)](*operands, BLOCK_M=rows_per_program, **given, **options)
    for part, out in ((dw_part, dw), (db_part, db)):
        if out is not None:
            column_sum(part, out)


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
    return layer_norm_with_moments(x, weight, bias, eps, blocks)[0]


def layer_norm_with_moments(
    x: torch.Tensor, weight: torch.Tensor | None = None, bias: torch.Tensor | None = None, eps: float = 1e-5,
    blocks: Blocks | None = None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:  # fmt: skip
    """Return `layer_norm` of x, and mean and rstd of each row: float32, of the leading dimensions of x."""
    _check("layer_norm", x, weight, bias)
    y = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    mean, rstd = (torch.empty(x.shape[:-1], dtype=torch.float32, device=x.device) for _ in range(2))
    launch_layer_norm(x, weight, bias, eps, y, mean, rstd, blocks or blocks_for("layer_norm", x))
    return y, mean, rstd


def layer_norm_backward(
    dy: torch.Tensor, x: torch.Tensor, weight: torch.Tensor | None, bias: torch.Tensor | None,
    mean: torch.Tensor, rstd: torch.Tensor, blocks: Blocks | None = None,
) -> tuple[torch.Tensor, torch.Tensor | None, torch.Tensor | None]:  # fmt: skip
    """Return the gradients of x, weight and bias (None for one that is None) for the gradient dy of y.

    dy: as x; the rest as `layer_norm_with_moments` takes and returns it. Raises like `layer_norm`.
    """
    _check("layer_norm_backward", x, weight, bias, dy=dy, mean=mean, rstd=rstd)
    dx = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    dw, db = (None if p is None else torch.empty_like(p) for p in (weight, bias))
    blocks = blocks or blocks_for("layer_norm_backward", x)
    launch_layer_norm_backward(dy, x, weight, bias, mean, rstd, dx, dw, db, blocks)
    return dx, dw, db


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


def _check(operator, x, weight, bias, dy=None, mean=None, rstd=None):
    check_device(operator, x=x, weight=weight, bias=bias, dy=dy, mean=mean, rstd=rstd)
    check_dtype(operator, FLOATS, x=x, weight=weight, bias=bias, dy=dy)
    check_dtype(operator, (torch.float32,), mean=mean, rstd=rstd)
    n = x.shape[-1:]
    check_shape(
        operator,
        weight=(weight, n),
        bias=(bias, n),
        dy=(dy, x.shape),
        mean=(mean, x.shape[:-1]),
        rstd=(rstd, x.shape[:-1]),
    )
    check_contiguous(operator, weight=weight, bias=bias, mean=mean, rstd=rstd)
    for name, t in (("x", x), ("dy", dy)):
        if t is not None and t.dim() and t.shape[-1] > 1 and t.stride(-1) != 1:
            raise ValueError(f"{operator}: {name} has strides {t.stride()}; 1 in the last dimension is taken")


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


def _backward_reference(dy, x, weight, bias, mean, rstd):
    x_hat = (x - mean[..., None]) * rstd[..., None]
    g = dy * weight
    dx = rstd[..., None] * (g - g.mean(-1, keepdim=True) - x_hat * (g * x_hat).mean(-1, keepdim=True))
    return dx, (dy * x_hat).flatten(0, -2).sum(0), dy.flatten(0, -2).sum(0)


def _backward_chain(dy, x, weight, bias, mean, rstd):
    x, weight, bias = (t.detach().clone().requires_grad_() for t in (x, weight, bias))
    return torch.autograd.grad(torch.nn.functional.layer_norm(x, x.shape[-1:], weight, bias), (x, weight, bias), dy)


def _backward_terms(dy, x, weight, bias, mean, rstd):
    x_hat = (x.abs() + mean.abs()[..., None]) * rstd[..., None]
    g = (dy * weight).abs()
    dx = rstd[..., None] * (g + g.mean(-1, keepdim=True) + x_hat * (g * x_hat).mean(-1, keepdim=True))
    return dx, (dy.abs() * x_hat).flatten(0, -2).sum(0), dy.abs().flatten(0, -2).sum(0)


def _rows(*shape, mean=0.0):
    def inputs(draw: Draw):
        n = shape[-1]
        return draw.normal(*shape) + mean, draw.normal(n), draw.normal(n), 1e-5

    return inputs


def _around_row(difference):
    return lambda draw: _rows(3, draw.blocks["ROW"] + difference)(draw)


def _long(draw: Draw):
    return _rows(3, 2 * draw.blocks["ROW"] + 3, mean=100.0)(draw)


def _gradients(inputs):
    """Turn the inputs of `layer_norm` into those of its gradient, with right moments."""

    def backward(draw: Draw):
        x, weight, bias, eps = inputs(draw)
        _, mean, rstd = _reference(x.double(), weight.double(), bias.double(), eps)
        return draw.normal(*x.shape), x, weight, bias, mean.float(), rstd.float()

    return backward


def _transposed(draw: Draw):
    """Rows that lie apart: the middle dimension of a larger tensor."""
    x, weight, bias, eps = _rows(9, 2, 65)(draw)
    return x[:, 0], weight, bias, eps


FORWARD = KernelCase(
    name="layer_norm",
    operator=layer_norm_with_moments,
    launch=launch_layer_norm,
    reference=_reference,
    terms=_terms,
    torch=lambda x, weight, bias, eps: torch.nn.functional.layer_norm(x, x.shape[-1:], weight, bias, eps),
    dtypes=tuple(map(named, FLOATS)),
    samples=(
        Sample("0x5", _rows(0, 5)),
        Sample("1x1", _rows(1, 1)),  # no variance: eps alone
        Sample("7x781", _rows(7, 781), quick=True),
        Sample("130x16", _rows(130, 16)),  # several rows a program
        Sample("2x3x64", _rows(2, 3, 64)),
        Sample("9x65-apart", _transposed),
        Sample("7x781-mean-100", _rows(7, 781, mean=100.0)),  # E[x²] - mean² would cancel
        Sample("7x781-plain", lambda draw: (draw.normal(7, 781), None, None, 1e-5)),
        Sample("7x781-no-bias", lambda draw: (draw.normal(7, 781), draw.normal(781), None, 1e-5)),
        Sample("row-minus-1", _around_row(-1)),
        Sample("row", _around_row(0)),
        Sample("row-plus-1", _around_row(1)),
        Sample("long-mean-100", _long),
        Sample("16384x4096", _rows(16384, 4096), bench=True),
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
)

BACKWARD = KernelCase(
    name="layer_norm_backward",
    operator=layer_norm_backward,
    launch=launch_layer_norm_backward,
    reference=_backward_reference,
    chain=_backward_chain,
    terms=_backward_terms,
    dtypes=tuple(map(named, FLOATS)),
    samples=(
        Sample("0x5", _gradients(_rows(0, 5))),
        Sample("7x781", _gradients(_rows(7, 781)), quick=True),
        Sample("130x16", _gradients(_rows(130, 16))),
        Sample("2x3x64", _gradients(_rows(2, 3, 64))),
        Sample("9x65-apart", _gradients(_transposed)),
        Sample("70x300-mean-100", _gradients(_rows(70, 300, mean=100.0))),
        Sample("row", _gradients(_around_row(0))),
        Sample("row-plus-1", _gradients(_around_row(1))),
        Sample("long-mean-100", _gradients(_long)),
        Sample("16384x4096", _gradients(_rows(16384, 4096)), bench=True),
    ),
    blocks=Blocks(ROW=8192, TILE=2048, PROGRAMS=256, ROWS=8, BLOCK_N=512, num_warps=8, num_stages=2),
    space={
        "ROW": (4096, 8192, 16384),
        "TILE": (1024, 2048, 4096, 8192),
        "PROGRAMS": (128, 256, 512),
        "ROWS": (4, 8, 16),
        "BLOCK_N": (256, 512, 1024),
        "num_warps": (4, 8, 16),
    },
    cost=lambda dy, x, *rest: Cost(3 * x.nbytes, 16 * x.numel()),
)

CASES = [FORWARD, BACKWARD]
