"""The gradients of layer normalisation. With x̂ = (x - mean) · rstd, g = dy · w, and means over a row:

    dx = rstd · (g - mean(g) - x̂ · mean(g · x̂))
    dw = Σ dy · x̂ over the rows
    db = Σ dy     over the rows

The two sums are made in two stages, and not by atomics, so that they come out the same each time: every program sums
the rows that it has, and a second kernel sums what the programs found.
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
    named,
    once_per_layout,
    rows_of,
)
from portability.kernels.rows import (
    column_sum,
    long_rows,
    normal_rows,
    pieces_of_rows,
    row_sample,
    rows_apart,
    whole_rows,
)


@triton.jit
def layer_norm_backward_kernel(
    dy_ptr, x_ptr, weight_ptr, mean_ptr, rstd_ptr, dx_ptr, dw_part_ptr, db_part_ptr, M, N,
    stride_dym, stride_xm, stride_dxm, rows_per_program,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """Each program takes its share of the rows, BLOCK_M whole ones at a time, and keeps its part of dw and db."""
    program = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK_N)[None, :]
    within = columns < N
    if weight_ptr is not None:
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
        if weight_ptr is not None:
            g = dy * weight
            dw += dy * x_hat
        if db_part_ptr is not None:
            db += dy
        mean_g = tl.sum(g, axis=1, keep_dims=True) / N
        mean_gx = tl.sum(g * x_hat, axis=1, keep_dims=True) / N
        dx = rstd * (g - mean_g - x_hat * mean_gx)
        tl.store(dx_ptr + rows * stride_dxm + columns, dx.to(dx_ptr.dtype.element_ty), mask=mask)
    columns = tl.arange(0, BLOCK_N)
    if weight_ptr is not None:
        tl.store(dw_part_ptr + program * N + columns, tl.sum(dw, axis=0), mask=columns < N)
    if db_part_ptr is not None:
        tl.store(db_part_ptr + program * N + columns, tl.sum(db, axis=0), mask=columns < N)


@triton.jit
def long_layer_norm_backward_kernel(
    dy_ptr, x_ptr, weight_ptr, mean_ptr, rstd_ptr, dx_ptr, dw_part_ptr, db_part_ptr, M, N,
    stride_dym, stride_xm, stride_dxm,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
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
        if weight_ptr is not None:
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
        if weight_ptr is not None:
            g = dy * tl.load(weight_ptr + columns, mask=columns < N, other=0.0).to(tl.float32)
            tl.store(dw_part_ptr + program * N + offsets, tl.sum(dy * x_hat, axis=0), mask=offsets < N)
        if db_part_ptr is not None:
            tl.store(db_part_ptr + program * N + offsets, tl.sum(dy, axis=0), mask=offsets < N)
        dx = rstd * (g - sum_g / N - x_hat * (sum_gx / N))
        tl.store(dx_ptrs + columns, dx.to(dx_ptr.dtype.element_ty), mask=mask)


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
    if whole:
        options = whole_rows(N, blocks)
        rows_per_program = cdiv(cdiv(M, options["BLOCK_M"]), blocks["PROGRAMS"]) * options["BLOCK_M"]
    else:
        options = pieces_of_rows(blocks)
        rows_per_program = blocks["ROWS"]
    programs = cdiv(M, rows_per_program)
    dw_part, db_part = (None if d is None else x.new_empty((programs, N), dtype=torch.float32) for d in (dw, db))
    operands = (dy, x, weight, mean, rstd, dx, dw_part, db_part, M, N, dy.stride(0), x.stride(0), dx.stride(0))
    if whole:
        layer_norm_backward_kernel[(programs,)](*operands, rows_per_program, **options)
    else:
        long_layer_norm_backward_kernel[(programs,)](*operands, BLOCK_M=rows_per_program, **options)
    for part, out in ((dw_part, dw), (db_part, db)):
        if out is not None:
            column_sum(part, out)


def layer_norm_backward(
    dy: torch.Tensor, x: torch.Tensor, weight: torch.Tensor | None, bias: torch.Tensor | None,
    mean: torch.Tensor, rstd: torch.Tensor, blocks: Blocks | None = None,
) -> tuple[torch.Tensor, torch.Tensor | None, torch.Tensor | None]:  # fmt: skip
    """Return the gradients of x, weight and bias (None for one that is None) for the gradient dy of y.

    dy: as x; the rest as `layer_norm_with_moments` takes and returns it. Raises like `layer_norm`.
    """
    check_layer_norm_backward(dy, x, weight, bias, mean, rstd)
    dx = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    dw, db = (None if p is None else torch.empty_like(p) for p in (weight, bias))
    blocks = blocks or blocks_for("layer_norm_backward", x)
    launch_layer_norm_backward(dy, x, weight, bias, mean, rstd, dx, dw, db, blocks)
    return dx, dw, db


@once_per_layout
def check_layer_norm_backward(dy, x, weight, bias, mean, rstd):
    n, rows = x.shape[-1:], x.shape[:-1]
    check_device("layer_norm_backward", dy=dy, x=x, weight=weight, bias=bias, mean=mean, rstd=rstd)
    check_dtype("layer_norm_backward", FLOATS, dy=dy, x=x, weight=weight, bias=bias)
    check_dtype("layer_norm_backward", (torch.float32,), mean=mean, rstd=rstd)
    check_shape("layer_norm_backward", dy=(dy, x.shape), weight=(weight, n), bias=(bias, n))
    check_shape("layer_norm_backward", mean=(mean, rows), rstd=(rstd, rows))
    check_contiguous("layer_norm_backward", weight=weight, bias=bias, mean=mean, rstd=rstd)
    check_last_stride("layer_norm_backward", dy=dy, x=x)


def _reference(dy, x, weight, bias, mean, rstd):
    x_hat = (x - mean[..., None]) * rstd[..., None]
    g = dy * weight
    dx = rstd[..., None] * (g - g.mean(-1, keepdim=True) - x_hat * (g * x_hat).mean(-1, keepdim=True))
    return dx, (dy * x_hat).flatten(0, -2).sum(0), dy.flatten(0, -2).sum(0)


def _chain(dy, x, weight, bias, mean, rstd):
    x, weight, bias = (t.detach().clone().requires_grad_() for t in (x, weight, bias))
    return torch.autograd.grad(torch.nn.functional.layer_norm(x, x.shape[-1:], weight, bias), (x, weight, bias), dy)


def _terms(dy, x, weight, bias, mean, rstd):
    x_hat = (x.abs() + mean.abs()[..., None]) * rstd[..., None]
    g = (dy * weight).abs()
    dx = rstd[..., None] * (g + g.mean(-1, keepdim=True) + x_hat * (g * x_hat).mean(-1, keepdim=True))
    return dx, (dy.abs() * x_hat).flatten(0, -2).sum(0), dy.abs().flatten(0, -2).sum(0)


def _gradient_of(rows, size=1.0):
    def inputs(draw: Draw):
        x = rows(draw) * size
        wide = x.double()
        rstd = torch.rsqrt(wide.var(-1, correction=0) + 1e-5)
        weight, bias = draw.normal(x.shape[-1]), draw.normal(x.shape[-1])
        return draw.normal(*x.shape) * size, x, weight, bias, wide.mean(-1).float(), rstd.float()

    return inputs


CASE = KernelCase(
    name="layer_norm_backward",
    operator=layer_norm_backward,
    launch=launch_layer_norm_backward,
    reference=_reference,
    chain=_chain,
    terms=_terms,
    dtypes=tuple(map(named, FLOATS)),
    samples=(
        Sample("0x5", _gradient_of(normal_rows(0, 5))),
        Sample("7x781", _gradient_of(normal_rows(7, 781)), quick=True),
        Sample("130x16", _gradient_of(normal_rows(130, 16))),
        Sample("2x3x64", _gradient_of(normal_rows(2, 3, 64))),
        Sample("9x65-apart", _gradient_of(rows_apart)),
        Sample("130x1200-mean-100", _gradient_of(normal_rows(130, 1200, mean=100.0))),  # more rows than programs
        Sample("row", _gradient_of(row_sample(0))),
        Sample("row-plus-1", _gradient_of(row_sample(1))),
        Sample("9-row-plus-1", _gradient_of(row_sample(1, rows=9))),  # more rows than a program takes of long ones
        Sample("row-plus-1-large", _gradient_of(row_sample(1), size=1e5), dtypes=("float32",)),  # past float16
        Sample("long-mean-100", _gradient_of(long_rows)),
        Sample("16384x4096", _gradient_of(normal_rows(16384, 4096)), bench=True),
    ),
    blocks=Blocks(ROW=8192, TILE=2048, PROGRAMS=128, ROWS=8, BLOCK_N=512, num_warps=8, num_stages=2),
    space={
        "ROW": (4096, 8192, 16384),
        "TILE": (1024, 2048, 4096, 8192),
        "PROGRAMS": (64, 128, 256, 512),
        "ROWS": (4, 8, 16),
        "BLOCK_N": (256, 512, 1024),
        "num_warps": (4, 8, 16),
    },
    cost=lambda dy, x, *rest: Cost(3 * x.nbytes, 16 * x.numel()),
    sweep=Sweep(powers_of_2(6, 15), lambda draw, n: _gradient_of(normal_rows(4096, n))(draw), "columns of 4096 rows"),
)
