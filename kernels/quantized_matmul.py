"""Matrix products with quantised weights, which are scaled back by groups along K, g(k) being the group of k:

    out = x @ w,  w[k, n] = s[g(k), n] · q[k, n],  q of 4 or 8 bits

A scale is constant within a group, so it is applied to the group's sum, in float32, and not to each weight:

    out[m, n] = Σ_g s[g, n] · Σ_{k in g} x[m, k] · q[k, n]

The quantised numbers are exact in x's dtype, and nothing but x @ q runs on the matrix units.
"""

import torch
import triton
import triton.language as tl

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
    check_contiguous,
    check_device,
    check_dtype,
    check_no_gradient,
    check_shape,
    named,
)
from portability.kernels.matmul_split import add_parts, shares, tile_options

PART_ROWS = 512  # of all parts of one tile: more cost more to write and to add than a further split of K saves


@triton.jit
def four_bits(bytes_, HIGH: tl.constexpr, DTYPE: tl.constexpr):
    """Return the low or the high four bits of int16 `bytes_`, less 8, in DTYPE; in float16 divided by 1024.

    None is converted, which hardware does at a quarter of its rate or less. In float16 the bits n are the subnormal
    number n · 2^-24, of which one FMA makes (n - 8) · 2^-10 exactly; high bits stay where they are, 16 times as much,
    and take another factor. In bfloat16 the bits 0x4300 + n are 128 + n: an OR and an exact subtraction.
    """
    if tl.float16 == DTYPE:
        if HIGH:
            values = (bytes_ & 0xF0).to(tl.float16, bitcast=True) * 1024.0 - 0.0078125
        else:
            values = (bytes_ & 0xF).to(tl.float16, bitcast=True) * 16384.0 - 0.0078125
    else:
        nibbles = bytes_ >> 4 if HIGH else bytes_ & 0xF
        if tl.bfloat16 == DTYPE:
            values = (nibbles | 0x4300).to(tl.bfloat16, bitcast=True) - 136.0
        else:
            values = nibbles.to(DTYPE) - 8.0
    return values.to(DTYPE)


@triton.jit
def int4_matmul_kernel(
    x_ptr, packed_ptr, scales_ptr, part_ptr, M, N, K, share,
    stride_xm, stride_xk, stride_pk, stride_pn, stride_sg, stride_m,
    HALF: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """Each program sums one tile over one part of K. A byte holds q[k] in its low and q[k + HALF] in its high bits.

    The tile is that of the transposed product, wᵀ @ xᵀ: weights are many where rows of x are few, and a matrix unit
    wants many rows on the left, which it takes from registers, where they are unpacked. A part is `share` rows of
    bytes; part p of the result begins p · M rows further on.
    """
    tiles_m = tl.cdiv(M, BLOCK_M)
    rows = ((tl.program_id(0) % tiles_m) * BLOCK_M + tl.arange(0, BLOCK_M)).to(tl.int64)
    cols = (tl.program_id(0) // tiles_m) * BLOCK_N + tl.arange(0, BLOCK_N)
    in_rows, in_cols = (rows < M)[None, :], cols < N
    first = tl.program_id(1) * share
    last = tl.minimum(first + share, K // 2)
    scale_ptrs = scales_ptr + cols
    UNIT: tl.constexpr = 1024.0 if tl.float16 == x_ptr.dtype.element_ty else 1.0  # of what `four_bits` returns
    acc = tl.zeros((BLOCK_N, BLOCK_M), dtype=tl.float32)
    scale = tl.load(scale_ptrs + first // HALF * stride_sg, mask=in_cols, other=0.0)
    for byte in range(first, last, BLOCK_K):  # BLOCK_K divides HALF and share: a block of bytes is of one group
        group = byte // HALF
        ahead = tl.minimum(byte + BLOCK_K, last - 1) // HALF  # a scale is read a block before it is used
        scale_ahead = tl.load(scale_ptrs + ahead * stride_sg, mask=in_cols, other=0.0)
        bytes_ = byte + tl.arange(0, BLOCK_K)
        low = bytes_ + group * HALF  # = group · 2 HALF + (bytes - group · HALF)
        x_ptrs = x_ptr + rows[None, :] * stride_xm + low[:, None] * stride_xk
        x_low = tl.load(x_ptrs, mask=in_rows, other=0.0)
        x_high = tl.load(x_ptrs + HALF * stride_xk, mask=in_rows, other=0.0)
        packed_ptrs = packed_ptr + cols[:, None] * stride_pn + bytes_[None, :].to(tl.int64) * stride_pk
        packed = tl.load(packed_ptrs, mask=in_cols[:, None], other=0).to(tl.int16)
        group_sum = tl.dot(four_bits(packed, False, x_low.dtype), x_low, input_precision="ieee")
        group_sum = tl.dot(four_bits(packed, True, x_low.dtype), x_high, group_sum, input_precision="ieee")
        acc += scale.to(tl.float32)[:, None] * group_sum
        scale = scale_ahead
    part_rows = tl.program_id(1).to(tl.int64) * M + rows
    part_ptrs = part_ptr + part_rows[None, :] * stride_m + cols[:, None]
    tl.store(part_ptrs, (acc * UNIT).to(part_ptr.dtype.element_ty), mask=in_rows & in_cols[:, None])


@triton.jit
def int8_matmul_kernel(
    x_ptr, q_ptr, scales_ptr, out_ptr, M, N, K, group_size,
    stride_xm, stride_xk, stride_qk, stride_qn, stride_sg, stride_om,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """Each program computes one tile."""
    rows = (tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)).to(tl.int64)
    cols = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    in_rows, in_cols = (rows < M)[:, None], (cols < N)[None, :]
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k0 in range(0, K, BLOCK_K):  # BLOCK_K divides group_size, or there is one group
        k = k0 + tl.arange(0, BLOCK_K)
        x_ptrs = x_ptr + rows[:, None] * stride_xm + k[None, :] * stride_xk
        x = tl.load(x_ptrs, mask=in_rows & (k < K)[None, :], other=0.0)
        q_ptrs = q_ptr + k[:, None].to(tl.int64) * stride_qk + cols[None, :] * stride_qn
        q = tl.load(q_ptrs, mask=(k < K)[:, None] & in_cols, other=0).to(x.dtype)
        partial = tl.dot(x, q, input_precision="ieee")
        scale_ptrs = scales_ptr + (k0 // group_size) * stride_sg + cols
        acc += tl.load(scale_ptrs, mask=cols < N).to(tl.float32)[None, :] * partial
    out_ptrs = out_ptr + rows[:, None] * stride_om + cols[None, :]
    tl.store(out_ptrs, acc.to(out_ptr.dtype.element_ty), mask=in_rows & in_cols)


def launch_int4_matmul(x, packed, scales, out, blocks):
    """Write x @ w into `out` (M, N), rows contiguous: where K is split among programs, in two launches."""
    (M, K), N = x.shape, packed.shape[1]
    if not out.numel():
        return
    half = K // scales.shape[0] // 2
    BLOCK_M = min(blocks["BLOCK_M"], max(16, next_power_of_2(M)))
    SPLIT = max(1, min(blocks["SPLIT"], PART_ROWS // BLOCK_M))
    blocks = blocks | {"BLOCK_K": min(half, blocks["BLOCK_K"]), "BLOCK_M": BLOCK_M, "SPLIT": SPLIT}
    tiles = cdiv(M, BLOCK_M) * cdiv(N, blocks["BLOCK_N"])
    share, parts = shares(K // 2, tiles, blocks)
    part = out[None] if parts == 1 else torch.empty((parts, M, N), dtype=torch.float32, device=x.device)
    int4_matmul_kernel[(tiles, parts)](
        x, packed, scales, part, M, N, K, share,
        *x.stride(), *packed.stride(), scales.stride(0), part.stride(1),
        HALF=half, **tile_options(blocks),
    )  # fmt: skip
    if parts > 1:
        add_parts(part, None, out)


def launch_int8_matmul(x, q, scales, out, blocks):
    """Write x @ w into `out` (M, N), rows contiguous."""
    (M, K), N = x.shape, q.shape[1]
    group_size = K // scales.shape[0]
    if scales.shape[0] > 1:
        blocks = blocks | {"BLOCK_K": min(group_size, blocks["BLOCK_K"])}
    if out.numel():
        int8_matmul_kernel[_grid(out, blocks)](
            x, q, scales, out, M, N, K, group_size,
            *x.stride(), *q.stride(), scales.stride(0), out.stride(0), **blocks,
        )  # fmt: skip


def _grid(out, blocks):
    return cdiv(out.shape[0], blocks["BLOCK_M"]), cdiv(out.shape[1], blocks["BLOCK_N"])


def int4_matmul(
    x: torch.Tensor, packed: torch.Tensor, scales: torch.Tensor, blocks: Blocks | None = None
) -> torch.Tensor:
    """Return x @ w, (M, N), contiguous, for weights of 4 bits as `quantize_int4` packs them; summed in float32.

    x       (M, K), float32, float16 or bfloat16, any strides
    packed  (K / 2, N) uint8, any strides
    scales  (K / group, N) of x's dtype, contiguous; the group is a power of two from 32 on

    Raises `TypeError` for another dtype, `ValueError` for other shapes, layouts or devices, and where `x` would need a
    gradient.
    """
    check_device("int4_matmul", x=x, packed=packed, scales=scales)
    check_dtype("int4_matmul", FLOATS, x=x, scales=scales)
    check_dtype("int4_matmul", (torch.uint8,), packed=packed)
    check_shape("int4_matmul", x=(x, ("M", "K")))
    M, K = x.shape
    check_shape("int4_matmul", packed=(packed, (K // 2, "N")))
    _check_groups("int4_matmul", K, packed.shape[1], scales, least=32, one_of_any_size=False)
    check_no_gradient("int4_matmul", x=x, scales=scales)
    out = torch.empty((M, packed.shape[1]), dtype=x.dtype, device=x.device)
    launch_int4_matmul(x, packed, scales, out, blocks or blocks_for("quantized_matmul_int4", x))
    return out


def int8_matmul(x: torch.Tensor, q: torch.Tensor, scales: torch.Tensor, blocks: Blocks | None = None) -> torch.Tensor:
    """Return x @ w, (M, N), contiguous, for weights of 8 bits; summed in float32.

    x       (M, K), float32, float16 or bfloat16, any strides
    q       (K, N) int8, any strides
    scales  (K / group, N) of x's dtype, contiguous; the group is a power of two from 16 on, or K itself: one a column

    Errors as `int4_matmul`.
    """
    check_device("int8_matmul", x=x, q=q, scales=scales)
    check_dtype("int8_matmul", FLOATS, x=x, scales=scales)
    check_dtype("int8_matmul", (torch.int8,), q=q)
    check_shape("int8_matmul", x=(x, ("M", "K")))
    M, K = x.shape
    check_shape("int8_matmul", q=(q, (K, "N")))
    _check_groups("int8_matmul", K, q.shape[1], scales, least=16, one_of_any_size=True)
    check_no_gradient("int8_matmul", x=x, scales=scales)
    out = torch.empty((M, q.shape[1]), dtype=x.dtype, device=x.device)
    launch_int8_matmul(x, q, scales, out, blocks or blocks_for("quantized_matmul_int8", x))
    return out


def quantize_int4(w: torch.Tensor, group: int = 128) -> tuple[torch.Tensor, torch.Tensor]:
    """Return `w` (K, N) as packed uint8 (K / 2, N) and scales (K / group, N) of w's dtype: q in -8 … 7, w ≈ scale · q.

    Row i of a group lies in the low four bits and row i + group / 2 in the high ones, each plus 8, so that a kernel has
    both as blocks of neighbours, with nothing to interleave.
    """
    q, scales = _quantize(w, group, 7)
    low, high = (q + 8).to(torch.uint8).chunk(2, dim=1)
    return (low | high << 4).flatten(0, 1), scales


def quantize_int8(w: torch.Tensor, group: int | None = None) -> tuple[torch.Tensor, torch.Tensor]:
    """Return `w` (K, N) as int8 (K, N) and scales (K / group, N) of w's dtype, w ≈ scale · q; one group by default."""
    q, scales = _quantize(w, group or w.shape[0], 127)
    return q.to(torch.int8).flatten(0, 1), scales


def _quantize(w, group, largest):
    w = w.unflatten(0, (-1, group))  # (groups, group, N)
    scales = (w.abs().amax(dim=1).float() / largest).clamp(min=1e-6).to(w.dtype)
    return (w.float() / scales[:, None].float()).round().clamp(-largest - 1, largest), scales


def _check_groups(operator, K, N, scales, least, one_of_any_size):
    check_shape(operator, scales=(scales, ("groups", N)))
    check_contiguous(operator, scales=scales)
    groups = scales.shape[0]
    size = K // groups if groups and K % groups == 0 else 0
    if not (size >= least and size & (size - 1) == 0) and not (one_of_any_size and groups == 1):
        taken = f"groups of a power of two from {least} on" + (", or one group" if one_of_any_size else "")
        raise ValueError(f"{operator}: K = {K} in {groups} groups; taken are {taken}")


def int4_reference(x, packed, scales):
    groups, N = scales.shape
    halves = packed.view(groups, -1, N)
    q = torch.cat((halves & 0xF, halves >> 4), dim=1).to(x.dtype) - 8
    return x @ (scales[:, None] * q).flatten(0, 1)


def int8_reference(x, q, scales):
    return x @ (scales[:, None] * q.unflatten(0, (scales.shape[0], -1)).to(x.dtype)).flatten(0, 1)


def _int4_terms(x, packed, scales):
    groups, N = scales.shape
    halves = packed.view(groups, -1, N)
    q = (torch.cat((halves & 0xF, halves >> 4), dim=1).to(x.dtype) - 8).abs()
    return x.abs() @ (scales.abs()[:, None] * q).flatten(0, 1)


def _int8_terms(x, q, scales):
    return int8_reference(x.abs(), q.long().abs(), scales.abs())


def _int4(M, N, K, group, layout=lambda d, x, packed: (x, packed)):
    def inputs(d: Draw):
        packed, scales = quantize_int4(d.normal(K, N, scale=K**-0.5), group)
        return *layout(d, d.normal(M, K), packed), scales

    return inputs


def _int8(M, N, K, group=None, layout=lambda d, x, q: (x, q)):
    def inputs(d: Draw):
        q, scales = quantize_int8(d.normal(K, N, scale=K**-0.5), group)
        return *layout(d, d.normal(M, K), q), scales

    return inputs


def _transposed(d: Draw, x, q):
    return d.transposed(x), d.transposed(q)


def _cost(x, *rest):
    moved = sum(t.numel() * t.element_size() for t in (x, *rest))
    return Cost(moved, flops=2 * rest[-1].numel() * x.shape[1], unit=named(x.dtype))


BLOCKS = Blocks(BLOCK_M=32, BLOCK_N=64, BLOCK_K=64, num_warps=4, num_stages=2)
SPACE = {
    "BLOCK_M": (16, 32, 64, 128),
    "BLOCK_N": (32, 64, 128, 256),
    "BLOCK_K": (32, 64, 128),
    "num_warps": (4, 8),
    "num_stages": (2, 3, 4),
}
SWEPT_ROWS = "rows of x, by 4096 x 14336 weights"  # from one token to a prompt

CASES = [
    KernelCase(
        name="quantized_matmul_int4",
        operator=int4_matmul,
        launch=launch_int4_matmul,
        reference=int4_reference,
        terms=_int4_terms,
        samples=(
            Sample("0x5x32", _int4(0, 5, 32, 32)),
            Sample("1x1x32", _int4(1, 1, 32, 32)),
            Sample("33x77x256-group64", _int4(33, 77, 256, 64), quick=True),
            Sample("16x64x128", _int4(16, 64, 128, 128)),
            Sample("1x130x512-group256", _int4(1, 130, 512, 256)),  # a group longer than a block
            Sample("1x32x2176-group64", _int4(1, 32, 2176, 64)),  # a part of K that is of several groups
            Sample("20x40x64-group32-transposed", _int4(20, 40, 64, 32, layout=_transposed)),
            Sample("16x14336x4096", _int4(16, 14336, 4096, 128), bench=True, dtypes=("float16", "bfloat16")),
        ),
        dtypes=("float32", "float16", "bfloat16"),
        cost=_cost,
        sweep=Sweep(powers_of_2(0, 12), lambda d, n: _int4(n, 14336, 4096, 128)(d), SWEPT_ROWS),
        blocks=BLOCKS | {"SPLIT": 4, "PROGRAMS": 256},
        space=SPACE,
    ),
    KernelCase(
        name="quantized_matmul_int8",
        operator=int8_matmul,
        launch=launch_int8_matmul,
        reference=int8_reference,
        terms=_int8_terms,
        samples=(
            Sample("0x5x16", _int8(0, 5, 16)),
            Sample("1x1x1", _int8(1, 1, 1)),
            Sample("33x77x129", _int8(33, 77, 129), quick=True),
            Sample("16x64x128-group32", _int8(16, 64, 128, 32)),
            Sample("5x70x512-group256", _int8(5, 70, 512, 256)),
            Sample("20x40x48-transposed", _int8(20, 40, 48, layout=_transposed)),
            Sample("16x14336x4096", _int8(16, 14336, 4096), bench=True, dtypes=("float16", "bfloat16")),
        ),
        dtypes=("float32", "float16", "bfloat16"),
        cost=_cost,
        sweep=Sweep(powers_of_2(0, 12), lambda d, n: _int8(n, 14336, 4096)(d), SWEPT_ROWS),
        blocks=BLOCKS,
        space=SPACE,
    ),
]
