"""Matrix product: c = activation(a @ b + bias), accumulated in float32 (int8 in int32, float64 in itself)."""

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
    differentiating,
    named,
    once_per_layout,
)
from portability.kernels.matmul_persistent import kernel_blocks, launch_matmul_persistent, takes
from portability.kernels.matmul_split import for_rows, launch_matmul_split, shares
from portability.kernels.operations import activate, grouped_tile

FLOAT8 = (torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz)
# Operand dtype -> dtype of the result. A float8 result would lose what the accumulator has.
RESULT = {**{d: d for d in (*FLOATS, torch.float64)}, torch.int8: torch.int32, **dict.fromkeys(FLOAT8, torch.bfloat16)}
ACCUMULATOR = {torch.int8: tl.int32, torch.float64: tl.float64}  # of the others, float32
FEW_ROWS = 64  # up to which one row of tiles holds them all, and K is what can be divided
BY_SIZE = ("matmul", "matmul_small", "matmul_tiny", "matmul_least")  # tables, of large tiles to small ones
LONG = 2048  # a K from which parts take longer to sum than to write and add
# How float32 operands are multiplied. "tf32" and the products of several bfloat16 are faster, and not on every target.
PRECISIONS = ("ieee", "tf32", "tf32x3", "bf16x3", "bf16x6")


@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, bias_ptr, c_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
    ACTIVATION: tl.constexpr, PRECISION: tl.constexpr, ACCUMULATOR: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):  # fmt: skip
    """Each program computes one BLOCK_M × BLOCK_N tile of c, over K in steps of BLOCK_K."""
    tile_m, tile_n = grouped_tile(tl.program_id(0), M, N, BLOCK_M, BLOCK_N, GROUP_M)
    rows = tile_m.to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    columns = tile_n.to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    k = tl.arange(0, BLOCK_K).to(tl.int64)
    a_ptrs = a_ptr + rows * stride_am + k[None, :] * stride_ak
    b_ptrs = b_ptr + k[:, None] * stride_bk + columns * stride_bn
    step = tl.full((), BLOCK_K, tl.int64)  # 64 bits: a step along a stride may pass 2³¹

    accumulator = tl.zeros((BLOCK_M, BLOCK_N), ACCUMULATOR)
    for start in range(0, K, BLOCK_K):
        # Past the end of K both are 0, which adds nothing; past M and N the tile is not stored.
        a = tl.load(a_ptrs, mask=(rows < M) & (k[None, :] < K - start), other=0.0)
        b = tl.load(b_ptrs, mask=(k[:, None] < K - start) & (columns < N), other=0.0)
        accumulator = tl.dot(a, b, accumulator, input_precision=PRECISION, out_dtype=ACCUMULATOR)
        a_ptrs += step * stride_ak
        b_ptrs += step * stride_bk

    # The epilogue: what follows the product is done while it is still in registers, in its precision.
    if bias_ptr is not None:
        accumulator += tl.load(bias_ptr + columns, mask=columns < N, other=0.0).to(ACCUMULATOR)
    c = activate(accumulator, ACTIVATION).to(c_ptr.dtype.element_ty)
    tl.store(c_ptr + rows * stride_cm + columns * stride_cn, c, mask=(rows < M) & (columns < N))


def launch_matmul(a, b, c, blocks, precision="ieee", bias=None, activation=""):
    """Write activation(a @ b + bias) into `c`."""
    (M, K), N = a.shape, b.shape[1]
    if not M * N:
        return
    given = {
        "ACTIVATION": activation,
        "PRECISION": precision,
        "ACCUMULATOR": ACCUMULATOR.get(a.dtype, tl.float32),
    }
    if blocks["SPLIT"] > 1:
        blocks = for_rows(blocks, M)
    tiles = cdiv(M, blocks["BLOCK_M"]) * cdiv(N, blocks["BLOCK_N"])
    share, parts = shares(K, tiles, blocks)
    if parts > 1:
        launch_matmul_split(a, b, bias, c, blocks, given, share, parts)
        return
    if blocks["PERSISTENT"] and takes(a) and takes(b) and takes(c):
        launch_matmul_persistent(a, b, bias, c, blocks, given)
        return
    matmul_kernel[(tiles,)](
        a, b, bias, c, M, N, K, *a.stride(), *b.stride(), *c.stride(), **given, **kernel_blocks(blocks)
    )  # fmt: skip


def matmul(a: torch.Tensor, b: torch.Tensor, precision: str = "ieee", blocks: Blocks | None = None) -> torch.Tensor:
    """Return a @ b, for a of (M, K) and b of (K, N) with any strides; differentiable for the floating dtypes of torch.

    float32 (in `precision`, one of PRECISIONS), float16, bfloat16 and float64 give their own dtype, int8 gives int32,
    float8 gives bfloat16. Raises `ValueError` for shapes and devices that do not fit, `TypeError` for dtypes.
    """
    if differentiating(a, b):
        return _Matmul.apply(a, b, precision, blocks)
    check_matmul(a, b, precision)
    c = torch.empty((a.shape[0], b.shape[1]), dtype=RESULT[a.dtype], device=a.device)
    launch_matmul(a, b, c, blocks or blocks_of_size(a, b), precision)
    return c


def blocks_of_size(a, b):
    """Return the blocks for the size of a @ b: the largest tiles of which there are enough to occupy the device.

    Where there are not, a long K is split, and so is that of few rows. ENOUGH is how many tiles are enough.
    """
    (M, K), N = a.shape, b.shape[1]
    if M <= FEW_ROWS:
        return blocks_for("matmul_few_rows", a)
    for table in BY_SIZE:
        blocks = blocks_for(table, a)
        tiles = cdiv(M, blocks["BLOCK_M"]) * cdiv(N, blocks["BLOCK_N"])
        if tiles >= blocks["ENOUGH"]:
            return blocks if tiles > blocks["PROGRAMS"] else _for_one_tile(blocks)
    return blocks_for("matmul_split", a) if K > LONG else blocks


@functools.lru_cache
def _for_one_tile(blocks):
    """Return the blocks where no program has a second tile: by staying only specialised warps gain something."""
    return blocks if blocks["SPECIALIZE"] else blocks | {"PERSISTENT": 0}


def matmul_small(a: torch.Tensor, b: torch.Tensor, blocks: Blocks | None = None) -> torch.Tensor:
    """Return a @ b as `matmul` does where its large tiles would leave compute units without one."""
    return matmul(a, b, blocks=blocks or blocks_for("matmul_small", a))


def matmul_tiny(a: torch.Tensor, b: torch.Tensor, blocks: Blocks | None = None) -> torch.Tensor:
    """Return a @ b as `matmul` does where the tiles of `matmul_small` would too."""
    return matmul(a, b, blocks=blocks or blocks_for("matmul_tiny", a))


def matmul_least(a: torch.Tensor, b: torch.Tensor, blocks: Blocks | None = None) -> torch.Tensor:
    """Return a @ b as `matmul` does where those of `matmul_tiny` would too, and K is too short to be split."""
    return matmul(a, b, blocks=blocks or blocks_for("matmul_least", a))


def matmul_split(a: torch.Tensor, b: torch.Tensor, blocks: Blocks | None = None) -> torch.Tensor:
    """Return a @ b as `matmul` does where tiles are few and K is long: split along K, and added in a second launch."""
    return matmul(a, b, blocks=blocks or blocks_for("matmul_split", a))


def matmul_few_rows(a: torch.Tensor, b: torch.Tensor, blocks: Blocks | None = None) -> torch.Tensor:
    """Return a @ b as `matmul` does for at most FEW_ROWS rows, whatever their number."""
    return matmul(a, b, blocks=blocks or blocks_for("matmul_few_rows", a))


def matmul_persistent(a: torch.Tensor, b: torch.Tensor, blocks: Blocks | None = None) -> torch.Tensor:
    """Return a @ b as `matmul` does, by the persistent kernel whatever the target's table says of `matmul`."""
    return matmul(a, b, blocks=blocks or blocks_for("matmul_persistent", a))


@once_per_layout
def check_matmul(a, b, precision):
    check_device("matmul", a=a, b=b)
    check_dtype("matmul", tuple(RESULT), a=a, b=b)
    check_shape("matmul", a=(a, ("M", "K")))
    check_shape("matmul", b=(b, (a.shape[1], "N")))
    if precision not in PRECISIONS:
        raise ValueError(f"matmul: precision {precision!r}; taken are {', '.join(PRECISIONS)}")


class _Matmul(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b, precision, blocks):
        ctx.precision = precision
        ctx.save_for_backward(a, b)
        return matmul(a, b, precision, blocks)

    @staticmethod
    @once_differentiable
    def backward(ctx, dc):
        a, b = ctx.saved_tensors
        return matmul(dc, b.T, ctx.precision), matmul(a.T, dc, ctx.precision), None, None


def _pair(M, N, K):
    return lambda draw: (draw.normal(M, K), draw.normal(K, N))


def _past_block(draw: Draw):
    M, N, K = (draw.blocks[name] + 1 for name in ("BLOCK_M", "BLOCK_N", "BLOCK_K"))
    return _pair(M, N, K)(draw)


def _block(draw: Draw):
    return _pair(*(draw.blocks[name] for name in ("BLOCK_M", "BLOCK_N", "BLOCK_K")))(draw)


def _laid_out(layout, M, N, K):
    def inputs(draw: Draw):
        a, b = _pair(M, N, K)(draw)
        return getattr(draw, layout)(a), getattr(draw, layout)(b)

    return inputs


def product_cost(a, b, c):
    return Cost(a.nbytes + b.nbytes + c.nbytes, 2 * a.shape[0] * a.shape[1] * b.shape[1], named(a.dtype))


SAMPLES = (
    Sample("0x5x7", _pair(0, 5, 7)),
    Sample("5x7x0", _pair(5, 7, 0)),  # a sum of nothing is 0, and must be written
    Sample("1x1x1", _pair(1, 1, 1)),
    Sample("257x129x65", _pair(257, 129, 65), quick=True),
    Sample("257x129x65-transposed", _laid_out("transposed", 257, 129, 65)),
    Sample("65x129x257-strided", _laid_out("strided", 65, 129, 257)),
    Sample("64x64x64-offset", _laid_out("offset", 64, 64, 64)),
    Sample("1x300x513", _pair(1, 300, 513)),
    Sample("block", _block),
    Sample("block-plus-1", _past_block),
    Sample("600x70x40", _pair(600, 70, 40)),  # more than one group, the last one shorter
    Sample("256x256x256", _pair(256, 256, 256)),  # multiples of 16: the variant with wide loads
    Sample("4096x4096x4096", _pair(4096, 4096, 4096), bench=True),
    Sample("8192x8192x8192", _pair(8192, 8192, 8192), bench=True),
)
# Operands that descriptors take, with tiles that end outside; and one that they do not, for which pointers stand in.
ALIGNED_SAMPLES = (
    Sample("1x16x16", _pair(1, 16, 16)),
    Sample("77x144x80", _pair(77, 144, 80), quick=True),
    Sample("80x144x112-transposed", _laid_out("transposed", 80, 144, 112)),
    Sample("600x80x48", _pair(600, 80, 48)),  # more tiles than one group; more than one a program
    Sample("257x129x65", _pair(257, 129, 65)),
    Sample("4096x4096x4096", _pair(4096, 4096, 4096), bench=True),
    Sample("8192x8192x8192", _pair(8192, 8192, 8192), bench=True),
)


FEW_SAMPLES = (
    Sample("1x16x0", _pair(1, 16, 0)),
    Sample("1x1x1", _pair(1, 1, 1)),
    Sample("17x65x300", _pair(17, 65, 300), quick=True),
    Sample("2x3x200", _pair(2, 3, 200)),  # all parts together are fewer elements than a block adds
    Sample("5x130x1000-transposed", _laid_out("transposed", 5, 130, 1000)),
    Sample("64x64x256", _pair(64, 64, 256)),
    Sample("70x40x129-strided", _laid_out("strided", 70, 40, 129)),
    Sample("16x14336x4096", _pair(16, 14336, 4096), bench=True, dtypes=("float16", "bfloat16")),
)
SMALL_SAMPLES = (
    Sample("77x144x80", _pair(77, 144, 80), quick=True),
    Sample("2048x1024x8192", _pair(2048, 1024, 8192), bench=True, dtypes=("float16", "bfloat16")),
    Sample("512x4096x14336", _pair(512, 4096, 14336), bench=True, dtypes=("float16", "bfloat16")),
)
TINY_SAMPLES = (
    Sample("65x80x48", _pair(65, 80, 48), quick=True),
    Sample("1024x1024x1024", _pair(1024, 1024, 1024), bench=True, dtypes=("float16", "bfloat16")),
)
LEAST_SAMPLES = (
    Sample("65x48x80", _pair(65, 48, 80), quick=True),
    Sample("128x4096x4096", _pair(128, 4096, 4096), bench=True, dtypes=("float16", "bfloat16")),
)
SPLIT_SAMPLES = (
    Sample("65x33x300", _pair(65, 33, 300), quick=True),
    Sample("77x144x512-transposed", _laid_out("transposed", 77, 144, 512)),
    Sample("128x1024x8192", _pair(128, 1024, 8192), bench=True, dtypes=("float16", "bfloat16")),
)
PLAIN = {"PERSISTENT": 0, "SPECIALIZE": 0, "SUBTILES": 1, "SPLIT": 1, "PROGRAMS": 128, "ENOUGH": 128}


TILES = ((32, 64, 128, 256), (32, 64, 128, 256))  # BLOCK_M and BLOCK_N that a search may take


def _case(name, operator, samples, blocks, tiles=TILES):
    return KernelCase(
        name=name,
        operator=operator,
        launch=launch_matmul,
        reference=lambda a, b: torch.matmul(a.double(), b.double()),
        chain=torch.matmul,
        terms=lambda a, b: torch.matmul(a.abs().double(), b.abs().double()),
        accumulates=dict.fromkeys(map(named, FLOAT8), "float8 products"),
        dtypes=tuple(map(named, RESULT)),
        samples=samples,
        blocks=Blocks(BLOCK_M=64, BLOCK_N=64, BLOCK_K=32, GROUP_M=8, num_warps=4, num_stages=3) | PLAIN | blocks,
        space={
            "BLOCK_M": tiles[0],
            "BLOCK_N": tiles[1],
            "BLOCK_K": (32, 64, 128),
            "GROUP_M": (4, 8, 16),
            "num_warps": (4, 8),
            "num_stages": (2, 3, 4),
        },
        cost=product_cost,
        sweep=Sweep(powers_of_2(7, 13), lambda draw, n: _pair(n, n, n)(draw), "rows and columns of each matrix"),
    )


# What makes a case one of small tiles is that it has no larger ones: its search stays below them.
CASES = [
    _case("matmul", matmul, SAMPLES, {}),
    _case("matmul_small", matmul_small, SMALL_SAMPLES, {}, ((64, 128), (64, 128))),
    _case("matmul_tiny", matmul_tiny, TINY_SAMPLES, {"BLOCK_M": 32}, ((32, 64), (64, 128))),
    _case("matmul_least", matmul_least, LEAST_SAMPLES, {"BLOCK_M": 32, "BLOCK_N": 32}, ((32, 64), (32, 64))),
    _case("matmul_split", matmul_split, SPLIT_SAMPLES, {"SPLIT": 4}, ((32, 64), (64, 128))),
    _case(
        "matmul_few_rows",
        matmul_few_rows,
        FEW_SAMPLES,
        {"BLOCK_M": 16, "SPLIT": 8, "PROGRAMS": 256},
        ((16, 32, 64), (64, 128)),
    ),
    _case("matmul_persistent", matmul_persistent, ALIGNED_SAMPLES, {"PERSISTENT": 1, "PROGRAMS": 16}),
]
