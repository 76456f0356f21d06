"""Elementwise operations with broadcasting and any strides, without copies: out[i] = f(x[i], y[i]).

Broadcasting is a stride of 0. Dimensions that lie evenly in all operands are merged first, so that most calls are of
one or two dimensions; up to four are taken.
"""

import functools
import math

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
    check_no_gradient,
    contiguous_like,
    differentiating,
    named,
    once_per_layout,
)
from portability.kernels.operations import compute

GRID_Y = 65_535  # the most programs along y (CUDA; the smallest limit of all targets)
FLOAT8 = (torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz)
REALS = (*FLOATS, torch.float64)
INTEGERS = (torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8)
# Operation -> the dtypes that it is for.
BINARY = {
    "add": (*REALS, *INTEGERS, *FLOAT8),
    "sub": (*REALS, *INTEGERS, *FLOAT8),
    "mul": (*REALS, *INTEGERS, *FLOAT8),
    "div": REALS,
    "maximum": (*REALS, *INTEGERS),
    "minimum": (*REALS, *INTEGERS),
    "relu_backward": FLOATS,
    "silu_backward": FLOATS,
    "gelu_backward": FLOATS,
}
UNARY = {
    "copy": (*REALS, *INTEGERS, *FLOAT8),
    "neg": (*REALS, *INTEGERS),
    "relu": FLOATS,
    "silu": FLOATS,
    "gelu": FLOATS,
}


@triton.jit
def tile_of(N, FOLDED: tl.constexpr, BLOCK_N: tl.constexpr):
    """Return this program's row and column of tiles. FOLDED: both are in x, as there are too many rows for y."""
    if FOLDED:
        columns = tl.cdiv(N, BLOCK_N)
        tile_m, tile_n = tl.program_id(0) // columns, tl.program_id(0) % columns
    else:
        tile_m, tile_n = tl.program_id(1), tl.program_id(0)
    return tile_m.to(tl.int64), tile_n.to(tl.int64)


@triton.jit
def elementwise_2d_kernel(
    x_ptr, y_ptr, out_ptr, M, N, stride_xm, stride_xn, stride_ym, stride_yn, stride_om, stride_on,
    OPERATION: tl.constexpr, FOLDED: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """The template of a kernel over two dimensions: each has its grid axis, its mask and its stride."""
    tile_m, tile_n = tile_of(N, FOLDED, BLOCK_N)
    m = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    n = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    mask = (m < M) & (n < N)
    x = tl.load(x_ptr + m * stride_xm + n * stride_xn, mask=mask)
    y = x
    if y_ptr is not None:
        y = tl.load(y_ptr + m * stride_ym + n * stride_yn, mask=mask)
    out = compute(x, y, OPERATION)
    tl.store(out_ptr + m * stride_om + n * stride_on, out.to(out_ptr.dtype.element_ty), mask=mask)


@triton.jit
def elementwise_4d_kernel(
    x_ptr, y_ptr, out_ptr, size_1, size_2, M, N,
    stride_x0, stride_x1, stride_x2, stride_x3, stride_y0, stride_y1, stride_y2, stride_y3,
    stride_o0, stride_o1, stride_o2, stride_o3,
    OPERATION: tl.constexpr, FOLDED: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """The same over four dimensions: the first three are counted as M rows, and taken apart for their strides."""
    tile_m, tile_n = tile_of(N, FOLDED, BLOCK_N)
    m = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    n = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    mask = (m < M) & (n < N)
    i, j, k = m // size_2 // size_1, m // size_2 % size_1, m % size_2
    x = tl.load(x_ptr + i * stride_x0 + j * stride_x1 + k * stride_x2 + n * stride_x3, mask=mask)
    y = x
    if y_ptr is not None:
        y = tl.load(y_ptr + i * stride_y0 + j * stride_y1 + k * stride_y2 + n * stride_y3, mask=mask)
    out = compute(x, y, OPERATION).to(out_ptr.dtype.element_ty)
    tl.store(out_ptr + i * stride_o0 + j * stride_o1 + k * stride_o2 + n * stride_o3, out, mask=mask)


def merge(shape, strides):
    """Return shape and strides (a list an operand) without dimensions of 1, neighbours merged where all lie evenly."""
    merged_shape, merged = [], [[] for _ in strides]
    for i, size in enumerate(shape):
        if size == 1:
            continue
        if merged_shape and all(m[-1] == s[i] * size for m, s in zip(merged, strides, strict=True)):
            merged_shape[-1] *= size
            for m, s in zip(merged, strides, strict=True):
                m[-1] = s[i]
        else:
            merged_shape.append(size)
            for m, s in zip(merged, strides, strict=True):
                m.append(s[i])
    return merged_shape, merged


def broadcast_strides(shape, strides, to):
    """Return the strides with which a tensor of `shape` and `strides` is seen as one of the shape `to`."""
    kept = [0 if size == 1 else stride for size, stride in zip(shape, strides, strict=True)]
    return [0] * (len(to) - len(shape)) + kept


@functools.lru_cache(maxsize=4096)
def plan(shape, layouts, blocks):
    """Return kernel, grid, sizes with strides, and constants for operands of `layouts`, (shape, strides) each."""
    shape, strides = merge(shape, [broadcast_strides(*layout, to=shape) for layout in layouts])
    rank = 2 if len(shape) <= 2 else 4
    shape = [1] * (rank - len(shape)) + shape
    strides = [[0] * (rank - len(s)) + s for s in strides]
    if len(strides) == 2:  # an operation on one: y is not read
        strides.insert(0, strides[0])
    M, N = math.prod(shape[:-1]), shape[-1]
    sizes = (M, N) if rank == 2 else (shape[1], shape[2], M, N)
    BLOCK_N = min(blocks["TILE"] if M == 1 else blocks["BLOCK_N"], next_power_of_2(N))
    BLOCK_M = min(blocks["TILE"] // BLOCK_N, next_power_of_2(M))
    rows, columns = cdiv(M, BLOCK_M), cdiv(N, BLOCK_N)
    folded = rows > GRID_Y
    grid = (rows * columns,) if folded else (columns, rows)
    kernel = elementwise_2d_kernel if rank == 2 else elementwise_4d_kernel
    constants = Blocks(FOLDED=folded, BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, num_warps=blocks["num_warps"])
    return kernel, grid, (*sizes, *(stride for operand in strides for stride in operand)), constants


def launch_elementwise(operation, x, y, out, blocks):
    """Write f(x, y) into `out`, whose shape x and y broadcast to; y is None for an operation on one."""
    if out.numel():
        layouts = tuple([(t.shape, t.stride()) for t in (x, y, out) if t is not None])
        kernel, grid, numbers, constants = plan(out.shape, layouts, blocks)
        kernel[grid](x, y, out, *numbers, OPERATION=operation, **constants)


def elementwise(
    operation: str, x: torch.Tensor, y: torch.Tensor | None = None, blocks: Blocks | None = None
) -> torch.Tensor:
    """Return f(x, y), or f(x) for an operation on one, in the shape that the operands broadcast to; contiguous.

    operation: a name of BINARY or UNARY. x, y: of one dtype among those that the operation is for, any strides; shapes
    that broadcast to at most four dimensions once those that lie evenly are merged. float8 is rounded once.
    Raises `ValueError` for names, shapes and devices that do not fit, `TypeError` for dtypes.
    """
    planner(operation)(x, y, blocks)  # refuses what is not taken
    if differentiating(x, y):  # the named functions below have their gradients
        check_no_gradient(f"elementwise {operation}", x=x, y=y)
    return _run(operation, x, y, blocks)


def _run(operation, x, y, blocks):
    """Return what `elementwise` does, whether or not a gradient is wanted."""
    shape, planned = planner(operation)(x, y, blocks)
    out = contiguous_like(x) if shape is None else torch.empty(shape, dtype=x.dtype, device=x.device)
    if planned is not None:
        kernel, grid, numbers, constants = planned
        kernel[grid](x, y, out, *numbers, OPERATION=operation, **constants)
    return out


def add(x: torch.Tensor, y: torch.Tensor, blocks: Blocks | None = None) -> torch.Tensor:
    """Return x + y, broadcast; differentiable. See `elementwise`."""
    return _Binary.apply("add", x, y, blocks) if differentiating(x, y) else _run("add", x, y, blocks)


def sub(x: torch.Tensor, y: torch.Tensor, blocks: Blocks | None = None) -> torch.Tensor:
    """Return x - y, broadcast; differentiable. See `elementwise`."""
    return _Binary.apply("sub", x, y, blocks) if differentiating(x, y) else _run("sub", x, y, blocks)


def mul(x: torch.Tensor, y: torch.Tensor, blocks: Blocks | None = None) -> torch.Tensor:
    """Return x · y, broadcast; differentiable. See `elementwise`."""
    return _Binary.apply("mul", x, y, blocks) if differentiating(x, y) else _run("mul", x, y, blocks)


def div(x: torch.Tensor, y: torch.Tensor, blocks: Blocks | None = None) -> torch.Tensor:
    """Return x / y of floating dtypes, broadcast; differentiable. See `elementwise`."""
    return _Binary.apply("div", x, y, blocks) if differentiating(x, y) else _run("div", x, y, blocks)


def maximum(x: torch.Tensor, y: torch.Tensor, blocks: Blocks | None = None) -> torch.Tensor:
    """Return the larger of x and y, NaN if either is, broadcast; without a gradient. See `elementwise`."""
    return elementwise("maximum", x, y, blocks)


def relu(x: torch.Tensor, blocks: Blocks | None = None) -> torch.Tensor:
    """Return x where it is positive, else 0; differentiable. See `elementwise`."""
    return _Unary.apply("relu", x, blocks) if differentiating(x) else _run("relu", x, None, blocks)


def silu(x: torch.Tensor, blocks: Blocks | None = None) -> torch.Tensor:
    """Return x · σ(x); differentiable. See `elementwise`."""
    return _Unary.apply("silu", x, blocks) if differentiating(x) else _run("silu", x, None, blocks)


def gelu(x: torch.Tensor, blocks: Blocks | None = None) -> torch.Tensor:
    """Return x · Φ(x), with Φ by the error function and not by tanh; differentiable. See `elementwise`."""
    return _Unary.apply("gelu", x, blocks) if differentiating(x) else _run("gelu", x, None, blocks)


def copy(x: torch.Tensor, blocks: Blocks | None = None) -> torch.Tensor:
    """Return x, contiguous. See `elementwise`."""
    return elementwise("copy", x, None, blocks)


class _Unary(torch.autograd.Function):
    @staticmethod
    def forward(ctx, operation, x, blocks):
        ctx.operation = operation
        ctx.save_for_backward(x)
        return elementwise(operation, x, None, blocks)

    @staticmethod
    @once_differentiable
    def backward(ctx, dout):
        (x,) = ctx.saved_tensors
        return None, elementwise(f"{ctx.operation}_backward", x, dout), None


class _Binary(torch.autograd.Function):
    @staticmethod
    def forward(ctx, operation, x, y, blocks):
        ctx.operation = operation
        ctx.save_for_backward(x, y)
        return elementwise(operation, x, y, blocks)

    @staticmethod
    @once_differentiable
    def backward(ctx, dout):
        x, y = ctx.saved_tensors
        if ctx.operation in ("add", "sub"):
            dx, dy = dout, dout if ctx.operation == "add" else elementwise("neg", dout)
        elif ctx.operation == "mul":
            dx, dy = elementwise("mul", dout, y), elementwise("mul", dout, x)
        else:  # (x / y)' = dx / y - x · dy / y²
            dx = elementwise("div", dout, y)
            dy = elementwise("neg", elementwise("div", elementwise("mul", dx, x), y))
        return None, dx.sum_to_size(x.shape), dy.sum_to_size(y.shape), None


@functools.cache
def planner(operation):
    """Return what checks two operands of an operation, or one and None, and plans the launch: `_planned`, memoised."""
    return once_per_layout(functools.partial(_planned, operation), tensors=2)


def _planned(operation, x, y, blocks):
    """Return the output's shape, or None for that of x, and its `plan`, or None where it has no elements."""
    check_elementwise(operation, x, y)
    blocks = blocks or blocks_for("elementwise_gelu" if y is None else "elementwise_add", x)
    shape = x.shape if y is None else torch.broadcast_shapes(x.shape, y.shape)
    operands = [t for t in (x, y, torch.empty(shape, device="meta")) if t is not None]
    layouts = tuple([(t.shape, t.stride()) for t in operands])
    planned = plan(shape, layouts, blocks) if operands[-1].numel() else None
    return None if shape == x.shape else shape, planned


def check_elementwise(operation, x, y):
    table = UNARY if y is None else BINARY
    if operation not in table:
        raise ValueError(f"elementwise: operation {operation!r}; taken are {', '.join(table)}")
    name = f"elementwise {operation}"
    check_device(name, x=x, y=y)
    check_dtype(name, table[operation], x=x, y=y)
    operands = [x] if y is None else [x, y]
    try:
        shape = torch.broadcast_shapes(*(t.shape for t in operands))
    except RuntimeError:
        raise ValueError(f"{name}: shapes {tuple(x.shape)} and {tuple(y.shape)} do not broadcast") from None
    result = torch.empty(shape, device="meta")
    merged, _ = merge(shape, [broadcast_strides(t.shape, t.stride(), to=shape) for t in (*operands, result)])
    if len(merged) > 4:
        raise ValueError(f"{name}: {len(merged)} dimensions that do not merge, {merged}; at most 4 are taken")


def _case(operation, function, samples, dtypes=FLOATS, **more):
    def launch(*tensors_and_blocks):
        *operands, out, blocks = tensors_and_blocks
        launch_elementwise(operation, operands[0], operands[1] if len(operands) > 1 else None, out, blocks)

    return KernelCase(
        name=f"elementwise_{operation}",
        operator=function,
        launch=launch,
        samples=samples,
        dtypes=tuple(map(named, dtypes)),
        blocks=Blocks(TILE=1024, BLOCK_N=256, num_warps=4),
        space={"TILE": (512, 1024, 2048, 4096), "BLOCK_N": (32, 64, 128, 256, 512), "num_warps": (2, 4, 8)},
        cost=lambda *tensors: Cost(sum(t.nbytes for t in tensors), tensors[-1].numel()),
        **more,
    )


def _pair(x, y):
    return lambda draw: (draw.normal(*x), draw.normal(*y))


def _positive_pair(x, y):
    return lambda draw: (draw.normal(*x), draw.uniform(*y, low=0.5, high=2.0))


def _nan(draw: Draw):
    """Every pair of the special values and ordinary ones, so that NaN and infinities meet from both sides."""
    return draw.special(16)[:, None], draw.special(16)[None, :]


def _four(draw: Draw):
    """Four dimensions of which no two merge, in other orders in x and y."""
    return draw.normal(4, 5, 2, 3).permute(1, 0, 3, 2), draw.normal(3, 5, 4, 2).permute(1, 2, 0, 3)


def _folded(draw: Draw):
    """One row of tiles more than y takes, of the fewest bytes: the grid is folded into x."""
    return (draw.normal(1, 3).expand(GRID_Y * draw.blocks["TILE"] // 4 + 1, 3),)


def _magnitudes(x, y):
    return x.abs() + y.abs()


REAL_NAMES = tuple(map(named, REALS))

CASES = [
    _case(
        "add", add, reference=torch.add, terms=_magnitudes, dtypes=BINARY["add"],
        samples=(
            Sample("0x5", _pair((0, 5), (5,))),
            Sample("scalars", _pair((), ())),
            Sample("1000", _pair((1000,), (1000,))),
            Sample("65x129-row", _pair((65, 129), (129,)), quick=True),
            Sample("65x129-column", _pair((65, 129), (65, 1))),
            Sample("64x128-row", _pair((64, 128), (128,))),  # multiples of 16: the variant with wide loads
            Sample("7x33-outer", _pair((7, 1), (1, 33))),
            Sample("65x129-scalar", _pair((65, 129), ())),
            Sample("33x70-transposed", lambda draw: (draw.transposed(draw.normal(33, 70)), draw.normal(33, 70))),
            Sample("33x70-strided", lambda draw: (draw.strided(draw.normal(33, 70)), draw.normal(70))),
            Sample("3x4x5x6-middle", _pair((3, 4, 5, 6), (3, 1, 5, 1))),
            Sample("5x4x3x2-permuted", _four),
            Sample("16x16-nan", lambda draw: (_nan(draw)[0].expand(16, 16), draw.normal(16)), dtypes=REAL_NAMES),
            Sample("16384x4096-row", _pair((16384, 4096), (4096,)), bench=True, dtypes=("float32", "float16")),
            Sample("8192x8192-transposed", lambda draw: (draw.normal(8192, 8192).T, draw.normal(8192, 8192)),
                   bench=True, dtypes=("float32", "float16")),
        ),
        sweep=Sweep(powers_of_2(4, 15), lambda draw, n: _pair((n, 4096), (4096,))(draw), "rows of 4096"),
    ),
    _case(
        "div", div, reference=torch.div, terms=lambda x, y: (x / y).abs(), dtypes=BINARY["div"],
        samples=(
            Sample("65x129-row", _positive_pair((65, 129), (129,)), quick=True),
            Sample("5x4x3x2-permuted", lambda draw: (_four(draw)[0], draw.uniform(5, 4, 3, 2, low=0.5, high=2.0))),
        ),
    ),
    _case(
        "maximum", maximum, reference=torch.maximum, terms=_magnitudes, dtypes=BINARY["maximum"],
        samples=(Sample("65x129-row", _pair((65, 129), (129,)), quick=True), Sample("16x16-nan", _nan)),
    ),
    _case(
        "gelu", gelu, reference=torch.nn.functional.gelu, terms=lambda x: 2 * x.abs(),
        samples=(
            Sample("65x129", lambda draw: (draw.normal(65, 129, scale=3.0),), quick=True),
            Sample("33x70-transposed", lambda draw: (draw.transposed(draw.normal(33, 70)),)),
            Sample("4096", lambda draw: (draw.normal(4096),)),
        ),
    ),
    _case(
        "silu", silu, reference=torch.nn.functional.silu, terms=lambda x: x.abs() * (1 + x.abs()) * torch.sigmoid(x),
        samples=(
            Sample("65x129", lambda draw: (draw.normal(65, 129, scale=3.0),), quick=True),
            Sample("4096-large", lambda draw: (draw.normal(4096, scale=100.0),)),
        ),
    ),
    _case(
        "relu", relu, reference=torch.relu, terms=torch.abs,
        samples=(
            Sample("65x129", lambda draw: (draw.normal(65, 129),), quick=True),
            Sample("300-nan", lambda draw: (draw.special(300),)),
        ),
    ),
    _case(
        "copy", copy, reference=torch.clone, terms=torch.abs, dtypes=UNARY["copy"],
        samples=(
            Sample("33x70-transposed", lambda draw: (draw.transposed(draw.normal(33, 70)),), quick=True),
            Sample("folded", _folded, bench=True, dtypes=("int8",)),
        ),
        sweep=Sweep(powers_of_2(8, 14), lambda draw, n: (draw.normal(n, n).T,), "rows and columns, transposed"),
    ),
]  # fmt: skip
