"""Matrix product: c = activation(a @ b + bias), accumulated in float32 (int8 in int32)."""

import torch
import triton
import triton.language as tl

from portability.kernel import Blocks, Cost, Draw, KernelCase, Sample, blocks_for, cdiv
from portability.kernels.checks import FLOATS, check_device, check_dtype, check_shape, named

FLOAT8 = (torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz)
# Operand dtype -> dtype of the result. A float8 result would lose what the accumulator has.
RESULT = {**{d: d for d in FLOATS}, torch.int8: torch.int32, **dict.fromkeys(FLOAT8, torch.bfloat16)}
# How float32 operands are multiplied. "tf32" and the products of several bfloat16 are faster, and not on every target.
PRECISIONS = ("ieee", "tf32", "tf32x3", "bf16x3", "bf16x6")


@triton.jit
def grouped_tile(pid, M, N, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, GROUP_M: tl.constexpr):
    """Return the tile of program `pid`: columns within groups of GROUP_M rows, so that neighbours share operands in
    the cache.
    """
    tiles_m = tl.cdiv(M, BLOCK_M)
    tiles_in_group = GROUP_M * tl.cdiv(N, BLOCK_N)
    first_m = pid // tiles_in_group * GROUP_M
    group_m = tl.minimum(tiles_m - first_m, GROUP_M)  # the last group may be shorter
    return first_m + pid % tiles_in_group % group_m, pid % tiles_in_group // group_m


@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
    PRECISION: tl.constexpr, ACCUMULATOR: tl.constexpr,
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

    c = accumulator.to(c_ptr.dtype.element_ty)
    tl.store(c_ptr + rows * stride_cm + columns * stride_cn, c, mask=(rows < M) & (columns < N))


def launch_matmul(a, b, c, blocks, precision="ieee"):
    """Write a @ b into `c`."""
    (M, K), N = a.shape, b.shape[1]
    if not M * N:
        return
    grid = (cdiv(M, blocks["BLOCK_M"]) * cdiv(N, blocks["BLOCK_N"]),)
    accumulator = tl.int32 if a.dtype is torch.int8 else tl.float32
    matmul_kernel[grid](
        a, b, c, M, N, K, *a.stride(), *b.stride(), *c.stride(), PRECISION=precision, ACCUMULATOR=accumulator, **blocks
    )  # fmt: skip


def matmul(a: torch.Tensor, b: torch.Tensor, precision: str = "ieee", blocks: Blocks | None = None) -> torch.Tensor:
    """Return a @ b, for a of (M, K) and b of (K, N) with any strides.

    float32 (in `precision`, one of PRECISIONS), float16 and bfloat16 give their own dtype, int8 gives int32, float8
    gives bfloat16. Raises `ValueError` for shapes and devices that do not fit, `TypeError` for dtypes.
    """
    check_device("matmul", a=a, b=b)
    check_dtype("matmul", tuple(RESULT), a=a, b=b)
    check_shape("matmul", a=(a, ("M", "K")))
    check_shape("matmul", b=(b, (a.shape[1], "N")))
    if precision not in PRECISIONS:
        raise ValueError(f"matmul: precision {precision!r}; taken are {', '.join(PRECISIONS)}")
    c = torch.empty((a.shape[0], b.shape[1]), dtype=RESULT[a.dtype], device=a.device)
    launch_matmul(a, b, c, blocks or blocks_for("matmul", a), precision)
    return c


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


def _cost(a, b, c):
    return Cost(a.nbytes + b.nbytes + c.nbytes, 2 * a.shape[0] * a.shape[1] * b.shape[1], named(a.dtype))


CASE = KernelCase(
    name="matmul",
    operator=matmul,
    launch=launch_matmul,
    reference=lambda a, b: torch.matmul(a.double(), b.double()),
    chain=torch.matmul,
    terms=lambda a, b: torch.matmul(a.abs().double(), b.abs().double()),
    dtypes=tuple(map(named, RESULT)),
    samples=(
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
        Sample("1100x130x40", _pair(1100, 130, 40)),  # more than one group, the last one shorter
        Sample("256x256x256", _pair(256, 256, 256)),  # multiples of 16: the variant with wide loads
        Sample("4096x4096x4096", _pair(4096, 4096, 4096), bench=True),
        Sample("8192x8192x8192", _pair(8192, 8192, 8192), bench=True),
    ),
    blocks=Blocks(BLOCK_M=64, BLOCK_N=64, BLOCK_K=32, GROUP_M=8, num_warps=4, num_stages=3),
    space={
        "BLOCK_M": (32, 64, 128, 256),
        "BLOCK_N": (32, 64, 128, 256),
        "BLOCK_K": (32, 64, 128),
        "GROUP_M": (4, 8, 16),
        "num_warps": (4, 8),
        "num_stages": (2, 3, 4),
    },
    cost=_cost,
)
