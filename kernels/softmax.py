"""Softmax over the last dimension: y = exp(x - max(x)) / sum(exp(x - max(x))), and its gradient.

A row that fits is held whole by one program, short rows several at once. Of a longer row a program holds as much as its
registers take, in pieces, since a tile of a power of two would be up to twice as long. What no longer fits is read
twice: once for its maximum m and its sum l, kept up to date block by block (Milakov and Gimelshein, Online normalizer
calculation for softmax, 2018), and once to write it.
"""

import functools

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
    contiguous_like,
    differentiating,
    named,
    once_per_layout,
    rows_of,
)
from portability.kernels.rows import pieces_of_rows, whole_rows

LOG2_E = tl.constexpr(1.4426950408889634)  # exp(x) = exp2(x · log2 e)


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
def middle_of(row, N, stride_xm, WIDTH: tl.constexpr):
    """Return where the middle of a row of x begins and its columns, and which column the first one is.

    A row may begin at any element, and wide accesses want multiples of 16 bytes, of WIDTH elements: what lies between
    the first and the last of those is the middle, and the few elements at both ends are the edges.
    """
    start = row * stride_xm
    first = tl.cdiv(start, WIDTH) * WIDTH
    head = (first - start).to(tl.int32)
    return first, tl.maximum(N - head, 0) // WIDTH * WIDTH, head


@triton.jit
def edges_of(middle, head, N, WIDTH: tl.constexpr):
    """Return the elements at both ends of a row, counted from where its middle begins, and which of them it has."""
    edge = tl.arange(0, 2 * WIDTH) - WIDTH
    edge = tl.where(edge < 0, edge, middle + edge).to(tl.int64)
    return edge, (edge >= -head) & (edge < N - head)


@triton.jit
def lanes_of_block(BLOCK: tl.constexpr, LANES: tl.constexpr, WIDTH: tl.constexpr):
    """Return 0 to BLOCK - 1 as (BLOCK / LANES / WIDTH, LANES, WIDTH): WIDTH neighbours are of one lane."""
    rows = tl.arange(0, BLOCK // LANES // WIDTH)[:, None, None] * LANES + tl.arange(0, LANES)[None, :, None]
    return rows * WIDTH + tl.arange(0, WIDTH)[None, None, :]


@triton.jit
def held_softmax_kernel(
    x_ptr, y_ptr, N, stride_xm, stride_xn, further_ym, stride_yn,
    PIECE: tl.constexpr, PIECES: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    """Each program holds one row, in PIECES pieces of PIECE columns: one tile would have a power of two of them.

    A row of y begins row · further_ym further on than x's.
    """
    WIDTH: tl.constexpr = 128 // x_ptr.dtype.element_ty.primitive_bitwidth
    row = tl.program_id(0).to(tl.int64)
    first, middle, head = middle_of(row, N, stride_xm, WIDTH)
    x_ptr += first + head * (stride_xn - 1)  # column `head`
    y_ptr += first + head * (stride_yn - 1) + row * further_ym
    lanes = lanes_of_block(PIECE, LANES, WIDTH)

    largest = tl.full((PIECE // LANES // WIDTH, LANES, WIDTH), float("-inf"), x_ptr.dtype.element_ty)
    pieces = ()
    for p in tl.static_range(PIECES):
        i = p * PIECE + lanes
        piece = tl.load(x_ptr + i.to(tl.int64) * stride_xn, mask=i < middle, other=float("-inf"))
        largest = tl.maximum(largest, piece)
        pieces += (piece,)  # type: ignore[assignment]
    edge, in_edge = edges_of(middle, head, N, WIDTH)
    x_edge = tl.load(x_ptr + edge * stride_xn, mask=in_edge, other=float("-inf")).to(tl.float32)
    top = tl.max(tl.max(tl.max(largest, axis=2), axis=0), axis=0).to(tl.float32)
    top = tl.maximum(top, tl.max(x_edge, axis=0))

    y_edge = tl.exp2((x_edge - top) * LOG2_E)
    sums = tl.zeros((PIECE // LANES // WIDTH, LANES, WIDTH), tl.float32)
    numerators = ()
    for p in tl.static_range(PIECES):
        numerators += (tl.exp2((pieces[p].to(tl.float32) - top) * LOG2_E),)  # type: ignore[assignment]
        sums += numerators[p]
    scale = 1.0 / (tl.sum(tl.sum(tl.sum(sums, axis=2), axis=0), axis=0) + tl.sum(y_edge, axis=0))

    tl.store(y_ptr + edge * stride_yn, (y_edge * scale).to(y_ptr.dtype.element_ty), mask=in_edge)
    for p in tl.static_range(PIECES):
        i = p * PIECE + lanes
        y = (numerators[p] * scale).to(y_ptr.dtype.element_ty)
        tl.store(y_ptr + i.to(tl.int64) * stride_yn, y, mask=i < middle)


@triton.jit
def online_softmax_kernel(
    x_ptr, y_ptr, N, stride_xm, stride_xn, further_ym, stride_yn,
    BLOCK_N: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    """Each program takes one row, BLOCK_N columns at a time; a row of y begins row · further_ym further on than x's.

    Each of LANES lanes has a maximum and a sum of its own, so that the first pass never waits for other threads.
    """
    WIDTH: tl.constexpr = 128 // x_ptr.dtype.element_ty.primitive_bitwidth
    row = tl.program_id(0).to(tl.int64)
    first, middle, head = middle_of(row, N, stride_xm, WIDTH)
    x_ptr += first + head * (stride_xn - 1)  # column `head`
    y_ptr += first + head * (stride_yn - 1) + row * further_ym
    lanes = lanes_of_block(BLOCK_N, LANES, WIDTH)

    m = tl.full((LANES,), float("-inf"), tl.float32)
    l = tl.zeros((LANES,), tl.float32)
    for block in range(0, middle, BLOCK_N):
        i = block + lanes
        x_ptrs = x_ptr + i.to(tl.int64) * stride_xn
        x = tl.load(x_ptrs, mask=i < middle, other=float("-inf"), eviction_policy="evict_last")  # to be read again
        m_new = tl.maximum(m, tl.max(tl.max(x, axis=2), axis=0).to(tl.float32))
        # While every element so far is -inf, there is nothing to subtract: -inf - -inf is NaN.
        shift = tl.where(m_new == float("-inf"), 0.0, m_new)
        numerator = tl.exp2((x.to(tl.float32) - shift[None, :, None]) * LOG2_E)
        l = l * tl.exp2((m - shift) * LOG2_E) + tl.sum(tl.sum(numerator, axis=2), axis=0)
        m = m_new

    edge, in_edge = edges_of(middle, head, N, WIDTH)
    x_edge = tl.load(x_ptr + edge * stride_xn, mask=in_edge, other=float("-inf")).to(tl.float32)
    top = tl.maximum(tl.max(m, axis=0), tl.max(x_edge, axis=0))
    y_edge = tl.exp2((x_edge - top) * LOG2_E)
    scale = 1.0 / (tl.sum(l * tl.exp2((m - top) * LOG2_E), axis=0) + tl.sum(y_edge, axis=0))
    tl.store(y_ptr + edge * stride_yn, (y_edge * scale).to(y_ptr.dtype.element_ty), mask=in_edge)

    n_blocks = tl.cdiv(middle, BLOCK_N)
    for block in range(0, n_blocks):
        # From the end to the start: what was read last is still in the cache.
        i = (n_blocks - 1 - block) * BLOCK_N + lanes
        at = i.to(tl.int64)
        x = tl.load(x_ptr + at * stride_xn, mask=i < middle, other=float("-inf"), eviction_policy="evict_first")
        y = tl.exp2((x.to(tl.float32) - top) * LOG2_E) * scale
        y_ptrs = y_ptr + at * stride_yn
        tl.store(y_ptrs, y.to(y_ptr.dtype.element_ty), mask=i < middle, eviction_policy="evict_first")


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


def pieces_held(N, blocks):
    """Return PIECE, PIECES, LANES and num_warps for programs that hold a row of N in pieces."""
    LANES = blocks["HELD_LANES"]
    return Blocks(PIECE=8 * LANES, PIECES=cdiv(N, 8 * LANES), LANES=LANES, num_warps=blocks["HELD_WARPS"])


def lanes_of_rows(blocks):
    """Return BLOCK_N, LANES and num_warps for programs that go over a row in pieces."""
    BLOCK_N = blocks["BLOCK_N"]
    return Blocks(BLOCK_N=BLOCK_N, LANES=min(blocks["LANES"], BLOCK_N // 8), num_warps=blocks["LONG_WARPS"])


def launch_softmax(x, y, blocks):
    """Write softmax(x) into `y`."""
    _run(planned_softmax(x, y, blocks), x, y)


def _run(planned, x, y):
    """Launch what `planned_softmax` returned."""
    if planned is not None:
        kernel, grid, numbers, options = planned
        kernel[grid](x, y, *numbers, **options)


@functools.partial(once_per_layout, tensors=2)
def planned_softmax(x, y, blocks):
    """Return kernel, grid, sizes with strides, and options of the launch, or None where x has no elements.

    y: None for one that is contiguous.
    """
    check_dtype("softmax", FLOATS, x=x)
    blocks = blocks or blocks_for("softmax", x)
    x = rows_of("softmax", "x", x)
    M, N = x.shape
    if not M * N:
        return None
    stride_xm, stride_xn = x.stride()
    stride_ym, stride_yn = (N, 1) if y is None else rows_of("softmax", "y", y).stride()
    if blocks["ROW"] >= N:
        options = whole_rows(N, blocks)
        numbers = M, N, stride_xm, stride_xn, stride_ym, stride_yn
        return softmax_kernel, (cdiv(M, options["BLOCK_M"]),), numbers, options
    numbers = N, stride_xm, stride_xn, stride_ym - stride_xm, stride_yn
    if blocks["HELD"] >= N:
        return held_softmax_kernel, (M,), numbers, pieces_held(N, blocks)
    return online_softmax_kernel, (M,), numbers, lanes_of_rows(blocks)


def launch_softmax_backward(y, dy, dx, blocks):
    """Write the gradient into `dx`."""
    views = [rows_of("softmax_backward", "an operand", t) for t in (y, dy, dx)]
    M, N = views[0].shape
    if not M * N:
        return
    strides = [s for v in views for s in v.stride()]
    if blocks["ROW"] < N:
        long_softmax_backward_kernel[(M,)](*views, N, *strides, **pieces_of_rows(blocks))
    else:
        options = whole_rows(N, blocks)
        softmax_backward_kernel[(cdiv(M, options["BLOCK_M"]),)](*views, M, N, *strides, **options)


def softmax(x: torch.Tensor, blocks: Blocks | None = None) -> torch.Tensor:
    """Return the softmax of x over its last dimension, contiguous, in the dtype of x; differentiable.

    x: float32, float16 or bfloat16, any strides whose leading dimensions are one without a copy. A row of nothing but
    -inf, or with +inf or NaN in it, gives NaN, as in torch. Raises `ValueError` for other layouts, `TypeError` for
    other dtypes.
    """
    if differentiating(x):
        return _Softmax.apply(x, blocks)
    planned = planned_softmax(x, None, blocks)
    y = contiguous_like(x)
    _run(planned, x, y)
    return y


def softmax_backward(y: torch.Tensor, dy: torch.Tensor, blocks: Blocks | None = None) -> torch.Tensor:
    """Return dx for y = softmax(x) and the gradient dy of y: (dy - sum(dy · y)) · y.

    y, dy: one shape, one dtype of `softmax`, strides as there. Raises like `softmax`.
    """
    check_softmax_backward(y, dy)
    dx = contiguous_like(y)
    launch_softmax_backward(y, dy, dx, blocks or blocks_for("softmax_backward", y))
    return dx


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


def _longest(blocks):
    """The most columns that a program holds."""
    return max(blocks["ROW"], blocks["HELD"])


def _around_longest(difference, rows=3):
    return lambda draw: (draw.normal(rows, _longest(draw.blocks) + difference),)


def _minus_inf(draw: Draw):
    """A causal mask's rows: a first block of nothing but -inf, a last one, scattered ones, and a whole row."""
    x = draw.normal(5, _longest(draw.blocks) + 2 * draw.blocks["BLOCK_N"] + 3)
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


BLOCKS = Blocks(ROW=8192, TILE=2048, BLOCK_N=4096, num_warps=8, num_stages=2)

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
        Sample("row-apart", lambda draw: (draw.normal(5, draw.blocks["ROW"] + 16)[:, 3:-2],)),  # unlike rows of y
        Sample("row-large", lambda draw: (1e5 * _around_row(9)(draw)[0],), dtypes=("float32",)),  # past float16
        Sample("held", _around_longest(0)),
        Sample("held-plus-1", _around_longest(1)),
        Sample("long-transposed", lambda draw: (draw.transposed(_around_longest(9)(draw)[0]),)),
        Sample("long-apart", lambda draw: (_around_longest(16, rows=5)(draw)[0][:, 3:-2],)),
        Sample("long-even", _around_longest(16, rows=2)),  # no edges, and not whole blocks
        Sample("long-large", lambda draw: (1e5 * _around_longest(9)(draw)[0],), dtypes=("float32",)),
        Sample("long-minus-inf", _minus_inf),
        Sample("16384x4096", lambda draw: (draw.normal(16384, 4096),), bench=True),
        Sample("2048x50257", lambda draw: (draw.normal(2048, 50_257),), bench=True),
        Sample("512x262144", lambda draw: (draw.normal(512, 262_144),), bench=True),
    ),
    blocks=BLOCKS | {"HELD": 16384, "HELD_LANES": 256, "HELD_WARPS": 8, "LANES": 256, "LONG_WARPS": 8},
    space={
        "ROW": (4096, 8192, 16384, 32768, 65536),
        "TILE": (1024, 2048, 4096, 8192),
        "BLOCK_N": (4096, 8192, 16384),
        "num_warps": (4, 8, 16),
        "HELD": (0, 16384, 32768, 49152, 53248),
        "HELD_LANES": (128, 256, 512),
        "HELD_WARPS": (4, 8, 16),
        "LANES": (256, 512, 1024),
        "LONG_WARPS": (8, 16, 32),
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
    blocks=BLOCKS,
    space={
        "ROW": (4096, 8192, 16384, 32768, 65536),
        "TILE": (1024, 2048, 4096, 8192),
        "BLOCK_N": (2048, 4096, 8192),
        "num_warps": (4, 8, 16),
        "num_stages": (1, 2, 3),
    },
    cost=lambda y, dy, dx: Cost(bytes=y.nbytes + dy.nbytes + dx.nbytes, flops=4 * y.numel()),
    sweep=Sweep(powers_of_2(6, 15), lambda draw, n: _probabilities(4096, n)(draw), "columns of 4096 rows"),
)

CASES = [FORWARD, BACKWARD]
