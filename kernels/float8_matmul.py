"""Matrix product of float8 operands with scales by blocks of 128 (DeepSeek-V3, 2024), g(k) being the block of k:

    out = x @ w,  x[m, k] = s_x[m, g(k)] · q_x[m, k],  w[k, n] = s_w[g(k), g(n)] · q_w[k, n]

The scales are constant within a block, so they are applied to the block's sum, in float32:

    out[m, n] = Σ_g s_x[m, g] · s_w[g, g(n)] · Σ_{k in g} q_x[m, k] · q_w[k, n]
"""

import torch
import triton
import triton.language as tl

from portability.kernel import Blocks, Cost, Draw, KernelCase, Sample, Sweep, blocks_for, cdiv, powers_of_2
from portability.kernels.checks import check_device, check_dtype, check_shape, named

FLOAT8 = (torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz)
SCALED = 128  # elements along K, and along N for weights, that share a scale


@triton.jit
def float8_matmul_kernel(
    x_ptr, x_scales_ptr, q_ptr, w_scales_ptr, out_ptr, M, N, K,
    stride_xm, stride_xk, stride_xsm, stride_xsg, stride_qk, stride_qn, stride_wsg, stride_wsn, stride_om,
    SCALED: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """Each program computes one tile. Sums longer than SCALED are in float32, whatever the matrix unit adds up in."""
    rows = (tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)).to(tl.int64)
    cols = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    in_rows, in_cols = (rows < M)[:, None], (cols < N)[None, :]
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k0 in range(0, K, BLOCK_K):  # BLOCK_K divides SCALED
        k = k0 + tl.arange(0, BLOCK_K)
        x_ptrs = x_ptr + rows[:, None] * stride_xm + k[None, :] * stride_xk
        x = tl.load(x_ptrs, mask=in_rows & (k < K)[None, :], other=0.0)
        q_ptrs = q_ptr + k[:, None].to(tl.int64) * stride_qk + cols[None, :] * stride_qn
        q = tl.load(q_ptrs, mask=(k < K)[:, None] & in_cols, other=0.0)
        partial = tl.dot(x, q)
        group = k0 // SCALED
        x_scale = tl.load(x_scales_ptr + rows * stride_xsm + group * stride_xsg, mask=rows < M)
        w_scale_ptrs = w_scales_ptr + group * stride_wsg + (cols // SCALED) * stride_wsn
        w_scale = tl.load(w_scale_ptrs, mask=cols < N)
        acc += x_scale[:, None] * w_scale[None, :] * partial
    out_ptrs = out_ptr + rows[:, None] * stride_om + cols[None, :]
    tl.store(out_ptrs, acc.to(out_ptr.dtype.element_ty), mask=in_rows & in_cols)


def launch_float8_matmul(x, x_scales, q, w_scales, out, blocks):
    """Write x @ w into `out` (M, N), rows contiguous."""
    (M, K), N = x.shape, q.shape[1]
    if out.numel():
        blocks = blocks | {"BLOCK_K": min(SCALED, blocks["BLOCK_K"])}
        grid = (cdiv(M, blocks["BLOCK_M"]), cdiv(N, blocks["BLOCK_N"]))
        float8_matmul_kernel[grid](
            x, x_scales, q, w_scales, out, M, N, K,
            *x.stride(), *x_scales.stride(), *q.stride(), *w_scales.stride(), out.stride(0),
            SCALED=SCALED, **blocks,
        )  # fmt: skip


def float8_matmul(
    x: torch.Tensor,
    x_scales: torch.Tensor,
    q: torch.Tensor,
    w_scales: torch.Tensor,
    blocks: Blocks | None = None,
) -> torch.Tensor:
    """Return x @ w, (M, N) bfloat16, contiguous, for both in float8 with scales by blocks of 128.

    x         (M, K), a float8 dtype, any strides
    x_scales  (M, ⌈K / 128⌉) float32, any strides
    q         (K, N), the same dtype, any strides
    w_scales  (⌈K / 128⌉, ⌈N / 128⌉) float32, any strides

    Raises `TypeError` for another dtype, `ValueError` for other shapes or devices.
    """
    check_device("float8_matmul", x=x, x_scales=x_scales, q=q, w_scales=w_scales)
    check_dtype("float8_matmul", FLOAT8, x=x, q=q)
    check_dtype("float8_matmul", (torch.float32,), x_scales=x_scales, w_scales=w_scales)
    check_shape("float8_matmul", x=(x, ("M", "K")))
    M, K = x.shape
    check_shape("float8_matmul", q=(q, (K, "N")))
    groups, N = cdiv(K, SCALED), q.shape[1]
    check_shape("float8_matmul", x_scales=(x_scales, (M, groups)), w_scales=(w_scales, (groups, cdiv(N, SCALED))))
    out = torch.empty((M, N), dtype=torch.bfloat16, device=x.device)
    launch_float8_matmul(x, x_scales, q, w_scales, out, blocks or blocks_for("quantized_matmul_float8", x))
    return out


def float8_reference(x, x_scales, q, w_scales):
    x = x * x_scales.repeat_interleave(SCALED, 1)[:, : x.shape[1]].to(x.dtype)
    w_scales = w_scales.repeat_interleave(SCALED, 0).repeat_interleave(SCALED, 1)
    return x @ (q * w_scales[: q.shape[0], : q.shape[1]].to(q.dtype))


def _float8(M, N, K, layout=lambda d, x, q: (x, q)):
    def inputs(d: Draw):
        groups = cdiv(K, SCALED)
        x_scales = d.uniform(M, groups, low=0.5, high=2.0, dtype=torch.float32)
        w_scales = d.uniform(groups, cdiv(N, SCALED), low=0.01, high=0.1, dtype=torch.float32)
        x, q = layout(d, d.normal(M, K), d.normal(K, N))
        return x, x_scales, q, w_scales

    return inputs


def _transposed(d: Draw, x, q):
    return d.transposed(x), d.transposed(q)


def _cost(x, *rest):
    moved = sum(t.numel() * t.element_size() for t in (x, *rest))
    return Cost(moved, flops=2 * rest[-1].numel() * x.shape[1], unit=named(x.dtype))


CASE = KernelCase(
    name="quantized_matmul_float8",
    operator=float8_matmul,
    launch=launch_float8_matmul,
    reference=float8_reference,
    samples=(
        Sample("0x5x16", _float8(0, 5, 16)),
        Sample("1x1x1", _float8(1, 1, 1)),
        Sample("33x150x289", _float8(33, 150, 289), quick=True),
        Sample("32x128x256", _float8(32, 128, 256)),
        Sample("70x20x33", _float8(70, 20, 33)),  # two programs along the rows
        Sample("17x300x130", _float8(17, 300, 130)),  # two programs along the columns of the widest tiles
        Sample("20x140x144-transposed", _float8(20, 140, 144, layout=_transposed)),
        Sample("4096x7168x2048", _float8(4096, 7168, 2048), bench=True),
    ),
    dtypes=("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"),
    cost=_cost,
    sweep=Sweep(powers_of_2(4, 13), lambda d, n: _float8(n, 7168, 2048)(d), "rows of x, by 2048 x 7168 weights"),
    blocks=Blocks(BLOCK_M=64, BLOCK_N=64, BLOCK_K=64, num_warps=4, num_stages=2),
    space={
        "BLOCK_M": (16, 32, 64, 128),
        "BLOCK_N": (32, 64, 128, 256),
        "BLOCK_K": (32, 64, 128),
        "num_warps": (4, 8),
        "num_stages": (2, 3, 4),
    },
)
