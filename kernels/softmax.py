"""Softmax over the last dimension: y = exp(x - max(x)) / sum(exp(x - max(x))), and its gradient.

A row that fits is held whole by one program, short rows several at once. A longer row is read twice: once for its
maximum m and its sum l, kept up to date block by block (Milakov and Gimelshein, Online normalizer calculation for
softmax, 2018), and once to write it.
"""

import torch
import triton
import triton.language as tl
from torch.autograd.function import once_differentiable

from portability.kernel import Blocks, Cost, Draw, KernelCase, Sample, Sweep, blocks_for, cdiv, powers_of_2
from portability.kernels.checks import (
    FLOATS,
    check_device,
    check_dtype,
    check_shape,
    differentiating,
    named,
    once_per_layout,
    rows_of,
)
from portability.kernels.rows import pieces_of_rows, whole_rows


@triton.jit
def softmax_kernel(
    x_ptr, y_ptr, M, N, stride_xm, stride_xn, stride_ym, stride_yn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """Each program takes BLOCK_M whole rows; BLOCK_N is N rounded up to a power of two."""
    rows = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    columns = tl.arange(0, BLOCK_N).to(tl.int64)[None, :]
    mask = (rows < M) & (columns < N)
    # Columns past the end are -inf: they are no maximum, and exp gives 0.
    x = tl.load(x_ptr + rows * stride_xm + columns * stride_xn, mask=mask, other=float("-inf")).to(tl.float32)
    numerator = tl.exp(x - tl.max(x, axis=1, keep_dims=True))
    y = numerator / tl.sum(numerator, axis=1, keep_dims=True)
    tl.store(y_ptr + rows * stride_ym + columns * stride_yn, y.to(y_ptr.dtype.element_ty), mask=mask)


@triton.jit
def online_softmax_kernel(x_ptr, y_ptr, N, stride_xm, stride_xn, stride_ym, stride_yn, BLOCK_N: tl.constexpr):
    """Each program takes one row, BLOCK_N columns at a time."""
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * stride_xm
    y_ptr += row * stride_ym
    m = float("-inf")
    l = 0.0
    for start in range(0, N, BLOCK_N):
        columns = start + tl.arange(0, BLOCK_N).to(tl.int64)
        x = tl.load(x_ptr + columns * stride_xn, mask=columns < N, other=float("-inf")).to(tl.float32)
        m_new = tl.maximum(m, tl.max(x, axis=0))
        # While every element so far is -inf, there is nothing to subtract: -inf - -inf is NaN.
        shift = tl.where(m_new == float("-inf"), 0.0, m_new)
        l = l * tl.exp(m - shift) + tl.sum(tl.exp(x - shift), axis=0)
        m = m_new
    n_blocks = tl.cdiv(N, BLOCK_N)
    for i in range(0, n_blocks):
        # From the end to the start: what was read last is still in the cache.
        columns = (n_blocks - 1 - i) * BLOCK_N + tl.arange(0, BLOCK_N).to(tl.int64)
        mask = columns < N
        x = tl.load(x_ptr + columns * stride_xn, mask=mask, other=float("-inf")).to(tl.float32)
        y = tl.exp(x - m) / l
        tl.store(y_ptr + columns * stride_yn, y.to(y_ptr.dtype.element_ty), mask=mask)


@triton.jit
def softmax_backward_kernel(
    y_ptr, dy_ptr, dx_ptr, M, N, stride_ym, stride_yn, stride_dym, stride_dyn, stride_dxm, stride_dxn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """dx = (dy - sum(dy · y)) · y, for BLOCK_M whole rows."""
    rows = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    columns = tl.arange(0, BLOCK_N).to(tl.int64)[None, :]
    mask = (rows < M) & (columns < N)
    y = tl.load(y_ptr + rows * stride_ym + columns * stride_yn, mask=mask, other=0.0).to(tl.float32)
    dy = tl.load(dy_ptr + rows * stride_dym + columns * stride_dyn, mask=mask, other=0.0).to(tl.float32)
    dx = (dy - tl.sum(dy * y, axis=1, keep_dims=True)) * y
    tl.store(dx_ptr + rows * stride_dxm + columns * stride_dxn, dx.to(dx_ptr.dtype.element_ty), mask=mask)


@triton.jit
def long_softmax_backward_kernel(
    y_ptr, dy_ptr, dx_ptr, N, stride_ym, stride_yn, stride_dym, stride_dyn, stride_dxm, stride_dxn,
    BLOCK_N: tl.constexpr,
):  # fmt: skip
    """dx = (dy - sum(dy · y)) · y, for one row, BLOCK_N columns at a time."""
    row = tl.program_id(0).to(tl.int64)
    y_ptr += row * stride_ym
    dy_ptr += row * stride_dym
    dx_ptr += row * stride_dxm
    products = tl.zeros((BLOCK_N,), tl.float32)
    for start in range(0, N, BLOCK_N):
        columns = start + tl.arange(0, BLOCK_N).to(tl.int64)
        y = tl.load(y_ptr + columns * stride_yn, mask=columns < N, other=0.0).to(tl.float32)
        dy = tl.load(dy_ptr + columns * stride_dyn, mask=columns < N, other=0.0).to(tl.float32)
        products += dy * y
    total = tl.sum(products, axis=0)
    n_blocks = tl.cdiv(N, BLOCK_N)
    for i in range(0, n_blocks):
        columns = (n_blocks - 1 - i) * BLOCK_N + tl.arange(0, BLOCK_N).to(tl.int64)
        mask = columns < N
        y = tl.load(y_ptr + columns * stride_yn, mask=mask, other=0.0).to(tl.float32)
        dy = tl.load(dy_ptr + columns * stride_dyn, mask=mask, other=0.0).to(tl.float32)
        dx = (dy - total) * y
        tl.store(dx_ptr + columns * stride_dxn, dx.to(dx_ptr.dtype.element_ty), mask=mask)


def _launch(whole_kernel, long_kernel, tensors, blocks):
    """Launch the kernel that fits the rows: programs that hold whole rows, or one program a row."""
    views = [rows_of("softmax", "an operand", t) for t in tensors]
    M, N = views[0].shape
    if not M * N:
        return
    strides = [s for v in views for s in v.stride()]
    if blocks["ROW"] < N:
        long_kernel[(M,)](*views, N, *strides, **pieces_of_rows(blocks))
        return
    options = whole_rows(N, blocks)
    whole_kernel[(cdiv(M, options["BLOCK_M"]),)](*views, M, N, *strides, **options)


def launch_softmax(x, y, blocks):
    """Write softmax(x) into `y`."""
    _launch(softmax_kernel, online_softmax_kernel, (x, y), blocks)


def launch_softmax_backward(y, dy, dx, blocks):
    """Write the gradient into `dx`."""
    _launch(softmax_backward_kernel, long_softmax_backward_kernel, (y, dy, dx), blocks)


def softmax(x: torch.Tensor, blocks: Blocks | None = None) -> torch.Tensor:
    """Return the softmax of x over its last dimension, contiguous, in the dtype of x; differentiable.

    x: float32, float16 or bfloat16, any strides whose leading dimensions are one without a copy. A row of nothing but
    -inf, or with +inf or NaN in it, gives NaN, as in torch. Raises `ValueError` for other layouts, `TypeError` for
    other dtypes.
    """
    if differentiating(x):
        return _Softmax.apply(x, blocks)
    check_softmax(x)
    y = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    launch_softmax(x, y, blocks or blocks_for("softmax", x))
    return y


def softmax_backward(y: torch.Tensor, dy: torch.Tensor, blocks: Blocks | None = None) -> torch.Tensor:
    """Return dx for y = softmax(x) and the gradient dy of y: (dy - sum(dy · y)) · y.

    y, dy: one shape, one dtype of `softmax`, strides as there. Raises like `softmax`.
    """
    check_softmax_backward(y, dy)
    dx = torch.empty(y.shape, dtype=y.dtype, device=y.device)
    launch_softmax_backward(y, dy, dx, blocks or blocks_for("softmax_backward", y))
    return dx


@once_per_layout
def check_softmax(x):
    check_dtype("softmax", FLOATS, x=x)
    rows_of("softmax", "x", x)


@once_per_layout
def check_softmax_backward(y, dy):
    check_device("softmax_backward", y=y, dy=dy)
    check_dtype("softmax_backward", FLOATS, y=y, dy=dy)
    check_shape("softmax_backward", dy=(dy, y.shape))
    rows_of("softmax_backward", "y", y)
    rows_of("softmax_backward", "dy", dy)


class _Softmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, blocks):
        y = softmax(x.detach(), blocks)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx, dy):
        (y,) = ctx.saved_tensors
        return softmax_backward(y, dy.contiguous()), None


def _terms(x):
    """exp turns an absolute error u·|x - max(x)| of its argument into a relative one of its result."""
    distance = (x - x.amax(-1, keepdim=True)).abs() if x.numel() else x
    return torch.softmax(x, -1) * (2 + distance)


def _backward_reference(y, dy):
    return (dy - (dy * y).sum(-1, keepdim=True)) * y


def _around_row(difference):
    return lambda draw: (draw.normal(3, draw.blocks["ROW"] + difference),)


def _minus_inf(draw: Draw):
    """A causal mask's rows: a first block of nothing but -inf, a last one, scattered ones, and a whole row."""
    x = draw.normal(5, 2 * draw.blocks["ROW"] + 3)
    x[0, : draw.blocks["BLOCK_N"] + 1] = float("-inf")
    x[1, 5:] = float("-inf")
    x[2, ::2] = float("-inf")
    x[3] = float("-inf")
    return (x,)


def _nan(draw: Draw):
    x = draw.normal(4, 300)
    x[0, 7], x[1, 299], x[2, 0] = float("nan"), float("inf"), float("-inf")
    return (x,)


def _probabilities(*shape):
    return lambda draw: (torch.softmax(draw.normal(*shape).float(), -1).to(draw.dtype), draw.normal(*shape))


FORWARD = KernelCase(
    name="softmax",
    operator=softmax,
    launch=launch_softmax,
    reference=lambda x: torch.softmax(x, -1),
    terms=_terms,
    dtypes=tuple(map(named, FLOATS)),
    samples=(
        Sample("0x5", lambda draw: (draw.normal(0, 5),)),
        Sample("1x1", lambda draw: (draw.normal(1, 1),)),
        Sample("7x781", lambda draw: (draw.normal(7, 781),), quick=True),
        Sample("130x16", lambda draw: (draw.normal(130, 16),)),  # several rows a program
        Sample("2x3x64", lambda draw: (draw.normal(2, 3, 64),)),
        Sample("129x5-transposed", lambda draw: (draw.transposed(draw.normal(129, 5)),)),
        Sample("4x129-strided", lambda draw: (draw.strided(draw.normal(4, 129)),)),
        Sample("5x300-large", lambda draw: (draw.normal(5, 300, scale=1000.0),)),  # exp overflows without the maximum
        Sample("4x300-nan", _nan),
        Sample("row-minus-1", _around_row(-1)),
        Sample("row", _around_row(0)),
        Sample("row-plus-1", _around_row(1)),
        Sample("long-minus-inf", _minus_inf),
        Sample("16384x4096", lambda draw: (draw.normal(16384, 4096),), bench=True),
        Sample("2048x50257", lambda draw: (draw.normal(2048, 50_257),), bench=True),
        Sample("512x262144", lambda draw: (draw.normal(512, 262_144),), bench=True),
    ),
    blocks=Blocks(ROW=8192, TILE=2048, BLOCK_N=4096, num_warps=8, num_stages=2),
    space={
        "ROW": (4096, 8192, 16384, 32768, 65536),
        "TILE": (1024, 2048, 4096, 8192),
        "BLOCK_N": (2048, 4096, 8192),
        "num_warps": (4, 8, 16),
        "num_stages": (1, 2, 3),
    },
    cost=lambda x, y: Cost(bytes=x.nbytes + y.nbytes, flops=5 * x.numel()),
    sweep=Sweep(powers_of_2(6, 16), lambda draw, n: (draw.normal(4096, n),), "columns of 4096 rows"),
)

BACKWARD = KernelCase(
    name="softmax_backward",
    operator=softmax_backward,
    launch=launch_softmax_backward,
    reference=_backward_reference,
    terms=lambda y, dy: (dy.abs() + (dy * y).abs().sum(-1, keepdim=True)) * y.abs(),
    dtypes=FORWARD.dtypes,
    samples=(
        Sample("0x5", _probabilities(0, 5)),
        Sample("7x781", _probabilities(7, 781), quick=True),
        Sample("130x16", _probabilities(130, 16)),
        Sample("2x3x64", _probabilities(2, 3, 64)),
        Sample("129x5-transposed", lambda draw: tuple(map(draw.transposed, _probabilities(129, 5)(draw)))),
        Sample("row", lambda draw: _probabilities(3, draw.blocks["ROW"])(draw)),
        Sample("row-plus-1", lambda draw: _probabilities(3, draw.blocks["ROW"] + 1)(draw)),
        Sample("long", lambda draw: _probabilities(2, 2 * draw.blocks["ROW"] + 3)(draw)),
        Sample("16384x4096", _probabilities(16384, 4096), bench=True),
    ),
    blocks=FORWARD.blocks,
    space=FORWARD.space,
    cost=lambda y, dy, dx: Cost(bytes=y.nbytes + dy.nbytes + dx.nbytes, flops=4 * y.numel()),
    sweep=Sweep(powers_of_2(6, 15), lambda draw, n: _probabilities(4096, n)(draw), "columns of 4096 rows"),
)

CASES = [FORWARD, BACKWARD]
