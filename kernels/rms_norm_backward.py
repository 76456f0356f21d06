"""The gradients of root mean square normalisation. With x̂ = x · rstd, g = dy · w, and the mean over a row:

    dx = rstd · (g - x̂ · mean(g · x̂))
    dw = Σ dy · x̂ over the rows

The sum over the rows is made in two stages, as in `layer_norm_backward`.
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
def rms_norm_backward_kernel(
    dy_ptr, x_ptr, weight_ptr, rstd_ptr, dx_ptr, dw_part_ptr, M, N,
    stride_dym, stride_xm, stride_dxm, rows_per_program,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """Each program takes its share of the rows, BLOCK_M whole ones at a time, and keeps its part of dw."""
    program = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK_N)[None, :]
    within = columns < N
    if weight_ptr is not None:
        weight = tl.load(weight_ptr + columns, mask=within, other=0.0).to(tl.float32)
    dw = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    first = program * rows_per_program
    last = tl.minimum(first + rows_per_program, M)
    for start in range(first, last, BLOCK_M):
        rows = start + tl.arange(0, BLOCK_M)[:, None]
        mask = (rows < last) & within
        g = tl.load(dy_ptr + rows * stride_dym + columns, mask=mask, other=0.0).to(tl.float32)
        x = tl.load(x_ptr + rows * stride_xm + columns, mask=mask, other=0.0).to(tl.float32)
        rstd = tl.load(rstd_ptr + rows, mask=rows < last, other=0.0)
        x_hat = x * rstd
        if weight_ptr is not None:
            dw += g * x_hat
            g *= weight
        mean_gx = tl.sum(g * x_hat, axis=1, keep_dims=True) / N
        dx = rstd * (g - x_hat * mean_gx)
        tl.store(dx_ptr + rows * stride_dxm + columns, dx.to(dx_ptr.dtype.element_ty), mask=mask)
    if weight_ptr is not None:
        columns = tl.arange(0, BLOCK_N)
        tl.store(dw_part_ptr + program * N + columns, tl.sum(dw, axis=0), mask=columns < N)


@triton.jit
def long_rms_norm_backward_kernel(
    dy_ptr, x_ptr, weight_ptr, rstd_ptr, dx_ptr, dw_part_ptr, M, N, stride_dym, stride_xm, stride_dxm,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """The same for rows that no program can hold: BLOCK_M rows, twice over their columns, BLOCK_N at a time."""
    program = tl.program_id(0).to(tl.int64)
    rows = program * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    dy_ptrs, x_ptrs, dx_ptrs = dy_ptr + rows * stride_dym, x_ptr + rows * stride_xm, dx_ptr + rows * stride_dxm
    rstd = tl.load(rstd_ptr + rows, mask=rows < M, other=0.0)
    sum_gx = tl.zeros((BLOCK_M, 1), tl.float32)
    for start in range(0, N, BLOCK_N):
        columns = start + tl.arange(0, BLOCK_N)[None, :]
        mask = (rows < M) & (columns < N)
        g = tl.load(dy_ptrs + columns, mask=mask, other=0.0).to(tl.float32)
        x = tl.load(x_ptrs + columns, mask=mask, other=0.0).to(tl.float32)
        if weight_ptr is not None:
            g *= tl.load(weight_ptr + columns, mask=columns < N, other=0.0).to(tl.float32)
        sum_gx += tl.sum(g * x * rstd, axis=1, keep_dims=True)
    n_blocks = tl.cdiv(N, BLOCK_N)
    for i in range(0, n_blocks):
        # From the end to the start: what was read last is still in the cache.
        offsets = (n_blocks - 1 - i) * BLOCK_N + tl.arange(0, BLOCK_N)
        columns = offsets[None, :]
        mask = (rows < M) & (columns < N)
        g = tl.load(dy_ptrs + columns, mask=mask, other=0.0).to(tl.float32)
        x_hat = tl.load(x_ptrs + columns, mask=mask, other=0.0).to(tl.float32) * rstd
        if weight_ptr is not None:
            tl.store(dw_part_ptr + program * N + offsets, tl.sum(g * x_hat, axis=0), mask=offsets < N)
            g *= tl.load(weight_ptr + columns, mask=columns < N, other=0.0).to(tl.float32)
        dx = rstd * (g - x_hat * (sum_gx / N))
        tl.store(dx_ptrs + columns, dx.to(dx_ptr.dtype.element_ty), mask=mask)


def launch_rms_norm_backward(dy, x, weight, rstd, dx, dw, blocks):
    """Write the gradients into `dx` and `dw`; allocates the parts of the sum."""
    dy, x, dx = (rows_of("rms_norm_backward", n, t) for n, t in (("dy", dy), ("x", x), ("dx", dx)))
    M, N = x.shape
    if not M * N:
        if dw is not None:
            dw.zero_()
        return
    whole = blocks["ROW"] >= N
    if whole:
        options = whole_rows(N, blocks)
        rows_per_program = cdiv(cdiv(M, options["BLOCK_M"]), blocks["PROGRAMS"]) * options["BLOCK_M"]
    else:
        options = pieces_of_rows(blocks)
        rows_per_program = blocks["ROWS"]
    programs = cdiv(M, rows_per_program)
    dw_part = None if dw is None else x.new_empty((programs, N), dtype=torch.float32)
    operands = (dy, x, weight, rstd, dx, dw_part, M, N, dy.stride(0), x.stride(0), dx.stride(0))
    if whole:
        rms_norm_backward_kernel[(programs,)](*operands, rows_per_program, **options)
    else:
        long_rms_norm_backward_kernel[(programs,)](*operands, BLOCK_M=rows_per_program, **options)
    if dw is not None:
        column_sum(dw_part, dw)


def rms_norm_backward(
    dy: torch.Tensor, x: torch.Tensor, weight: torch.Tensor | None, rstd: torch.Tensor, blocks: Blocks | None = None
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Return the gradients of x and weight (None if that is None) for the gradient dy of y.

    dy: as x; the rest as `rms_norm_with_rstd` takes and returns it. Raises like `rms_norm`.
    """
    check_rms_norm_backward(dy, x, weight, rstd)
    dx = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    dw = None if weight is None else torch.empty_like(weight)
    launch_rms_norm_backward(dy, x, weight, rstd, dx, dw, blocks or blocks_for("rms_norm_backward", x))
    return dx, dw


@once_per_layout
def check_rms_norm_backward(dy, x, weight, rstd):
    check_device("rms_norm_backward", dy=dy, x=x, weight=weight, rstd=rstd)
    check_dtype("rms_norm_backward", FLOATS, dy=dy, x=x, weight=weight)
    check_dtype("rms_norm_backward", (torch.float32,), rstd=rstd)
    check_shape("rms_norm_backward", dy=(dy, x.shape), weight=(weight, x.shape[-1:]), rstd=(rstd, x.shape[:-1]))
    check_contiguous("rms_norm_backward", weight=weight, rstd=rstd)
    check_last_stride("rms_norm_backward", dy=dy, x=x)


def _reference(dy, x, weight, rstd):
    x_hat = x * rstd[..., None]
    g = dy * weight
    dx = rstd[..., None] * (g - x_hat * (g * x_hat).mean(-1, keepdim=True))
    return dx, (dy * x_hat).flatten(0, -2).sum(0)


def _chain(dy, x, weight, rstd):
    x, weight = (t.detach().clone().requires_grad_() for t in (x, weight))
    y = (x.float() * torch.rsqrt(x.float().square().mean(-1, keepdim=True) + 1e-6)).to(x.dtype) * weight
    return torch.autograd.grad(y, (x, weight), dy)


def _terms(dy, x, weight, rstd):
    x_hat = x.abs() * rstd[..., None]
    g = (dy * weight).abs()
    dx = rstd[..., None] * (g + x_hat * (g * x_hat).mean(-1, keepdim=True))
    return dx, (dy.abs() * x_hat).flatten(0, -2).sum(0)


def _gradient_of(rows, size=1.0):
    def inputs(draw: Draw):
        x = rows(draw) * size
        rstd = torch.rsqrt(x.double().square().mean(-1) + 1e-6).float()
        return draw.normal(*x.shape) * size, x, draw.normal(x.shape[-1]), rstd

    return inputs


CASE = KernelCase(
    name="rms_norm_backward",
    operator=rms_norm_backward,
    launch=launch_rms_norm_backward,
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
        Sample("130x1200", _gradient_of(normal_rows(130, 1200))),  # more rows than programs
        Sample("row", _gradient_of(row_sample(0))),
        Sample("row-plus-1", _gradient_of(row_sample(1))),
        Sample("9-row-plus-1", _gradient_of(row_sample(1, rows=9))),  # more rows than a program takes of long ones
        Sample("7x781-large", _gradient_of(normal_rows(7, 781), size=1e5), dtypes=("float32",)),  # past float16
        Sample("row-plus-1-large", _gradient_of(row_sample(1), size=1e5), dtypes=("float32",)),
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
    cost=lambda dy, x, *rest: Cost(3 * x.nbytes, 12 * x.numel()),
    sweep=Sweep(powers_of_2(6, 15), lambda draw, n: _gradient_of(normal_rows(4096, n))(draw), "columns of 4096 rows"),
)
