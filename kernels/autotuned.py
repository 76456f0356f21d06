"""`@triton.autotune` and `@triton.heuristics` done right, on three small operations:

    column_sum  out[n] = Σ_m x[m, n]        adds to its output: reset_to_zero
    column_max  out[n] = max_m x[m, n]      the same, but from the least number on: a hook of its own
    sgd_step    p ← p - η · (g + λ · p)     writes over its input: restore_value
    normalize   y = x / √(Σ x²)             by rows: sizes follow from the input, with nothing to tune: heuristics

A tuner launches the kernel many times on the caller's own tensors. What a kernel finds in its output, or leaves in its
input, must therefore be put right before every trial, and before the launch that counts. A key is what may change which
configuration is best: sizes are rounded up to a power of two in it, since every new key is tuned anew. What that took
is told by `portability explain` for a cell and by `portability bench` for a sweep.
"""

import torch
import triton
import triton.language as tl

from portability.kernel import Blocks, Cost, Draw, KernelCase, Sample, Sweep, cdiv, next_power_of_2, powers_of_2
from portability.kernels.checks import (
    FLOATS,
    check_contiguous,
    check_device,
    check_dtype,
    check_no_gradient,
    check_shape,
)

LEAST = torch.iinfo(torch.int32).min

# Every configuration names its warps and stages: at the defaults a large tile spills, which no one is told of.
COLUMN_CONFIGS = [
    triton.Config({"BLOCK_M": 32, "BLOCK_N": 32}, num_warps=4, num_stages=1),
    triton.Config({"BLOCK_M": 32, "BLOCK_N": 128}, num_warps=4, num_stages=1),
    triton.Config({"BLOCK_M": 128, "BLOCK_N": 64}, num_warps=8, num_stages=1),
]

SGD_CONFIGS = [
    triton.Config({"BLOCK_SIZE": 256}, num_warps=2, num_stages=1),
    triton.Config({"BLOCK_SIZE": 1024}, num_warps=4, num_stages=1),
    triton.Config({"BLOCK_SIZE": 4096}, num_warps=8, num_stages=1),
]


def narrow_enough(configs, named_args, **_):
    """Return the configurations whose tile is not mostly empty columns; of all too wide ones, the narrowest."""
    width = next_power_of_2(named_args["N"])
    narrowest = min(config.kwargs["BLOCK_N"] for config in configs)
    return [config for config in configs if config.kwargs["BLOCK_N"] <= max(width, narrowest)]


def fill_with_least(args, reset_only=False):
    """Set the output to what a maximum begins with: `reset_to_zero` would hide every negative maximum."""
    del reset_only  # the same before a trial and before the launch that counts: there is nothing to keep
    args["out_ptr"].fill_(LEAST)


@triton.autotune(
    COLUMN_CONFIGS, key=["SIZE_M", "SIZE_N"], reset_to_zero=["out_ptr"],
    prune_configs_by={"early_config_prune": narrow_enough},
)  # fmt: skip
@triton.jit
def column_sum_kernel(
    x_ptr, out_ptr, M, N, stride_xm, stride_xn,
    SIZE_M: tl.constexpr, SIZE_N: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """Each program adds the sums of its BLOCK_M rows to BLOCK_N columns of the output."""
    x, cols = load_tile(x_ptr, M, N, stride_xm, stride_xn, 0.0, BLOCK_M, BLOCK_N)
    tl.atomic_add(out_ptr + cols, tl.sum(x.to(tl.float32), axis=0), mask=cols < N, sem="relaxed")


@triton.autotune(
    COLUMN_CONFIGS, key=["SIZE_M", "SIZE_N"], pre_hook=fill_with_least,
    prune_configs_by={"early_config_prune": narrow_enough},
)  # fmt: skip
@triton.jit
def column_max_kernel(
    x_ptr, out_ptr, M, N, stride_xm, stride_xn,
    SIZE_M: tl.constexpr, SIZE_N: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """Each program raises BLOCK_N columns of the output to the maxima of its BLOCK_M rows."""
    x, cols = load_tile(x_ptr, M, N, stride_xm, stride_xn, -(2**31), BLOCK_M, BLOCK_N)
    tl.atomic_max(out_ptr + cols, tl.max(x, axis=0), mask=cols < N, sem="relaxed")


@triton.jit
def load_tile(x_ptr, M, N, stride_xm, stride_xn, other, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """Return this program's tile of x, with `other` outside of x, and its columns."""
    rows = (tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)).to(tl.int64)
    cols = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    x_ptrs = x_ptr + rows[:, None] * stride_xm + cols[None, :] * stride_xn
    return tl.load(x_ptrs, mask=(rows < M)[:, None] & (cols < N)[None, :], other=other), cols


def whole_blocks(args):
    """Return whether no block reaches past the end."""
    return args["n_elements"] % args["BLOCK_SIZE"] == 0


@triton.autotune(SGD_CONFIGS, key=["SIZE"], restore_value=["p_ptr"])
@triton.heuristics({"EVEN": whole_blocks})  # nearer to the kernel than the tuner, so that it is given BLOCK_SIZE
@triton.jit
def sgd_kernel(
    p_ptr, g_ptr, n_elements, lr, weight_decay, SIZE: tl.constexpr, BLOCK_SIZE: tl.constexpr, EVEN: tl.constexpr
):  # fmt: skip
    """Each program updates BLOCK_SIZE neighbours; where all blocks are whole, nothing is masked."""
    offsets = tl.program_id(0).to(tl.int64) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = None if EVEN else offsets < n_elements
    p = tl.load(p_ptr + offsets, mask=mask).to(tl.float32)
    g = tl.load(g_ptr + offsets, mask=mask).to(tl.float32)
    p -= lr * (g + weight_decay * p)
    tl.store(p_ptr + offsets, p.to(p_ptr.dtype.element_ty), mask=mask)


@triton.heuristics(
    {
        "BLOCK_N": lambda args: next_power_of_2(args["N"]),
        "EVEN": lambda args: args["N"] == next_power_of_2(args["N"]),
        "num_warps": lambda args: min(16, max(1, next_power_of_2(args["N"]) // 512)),
    }
)
@triton.jit
def normalize_kernel(x_ptr, y_ptr, N, stride_xm, stride_ym, BLOCK_N: tl.constexpr, EVEN: tl.constexpr):
    """Each program holds one row."""
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK_N)
    mask = None if EVEN else cols < N
    other = None if EVEN else 0.0
    x = tl.load(x_ptr + row * stride_xm + cols, mask=mask, other=other).to(tl.float32)
    y = x / tl.sqrt(tl.sum(x * x, axis=0))
    tl.store(y_ptr + row * stride_ym + cols, y.to(y_ptr.dtype.element_ty), mask=mask)


def launch_column_sum(x, out, blocks):
    """Write the sums, tuned, or with `blocks` where any are given."""
    out.zero_()  # the tuner resets only what it launches itself
    _launch_columns(column_sum_kernel, x, out, blocks)


def launch_column_max(x, out, blocks):
    """Write the maxima, tuned, or with `blocks` where any are given."""
    out.fill_(LEAST)
    _launch_columns(column_max_kernel, x, out, blocks)


def _launch_columns(kernel, x, out, blocks):
    M, N = x.shape
    if x.numel():
        kernel = kernel.fn if blocks else kernel
        sizes = {"SIZE_M": next_power_of_2(M), "SIZE_N": next_power_of_2(N)}
        kernel[lambda meta: (cdiv(M, meta["BLOCK_M"]), cdiv(N, meta["BLOCK_N"]))](
            x, out, M, N, *x.stride(), **sizes, **blocks
        )


def launch_sgd_step(p, g, lr, weight_decay, _p_out, blocks):
    """Update `p`, tuned, or with `blocks` where any are given."""
    n = p.numel()
    if n:
        kernel = sgd_kernel.fn if blocks else sgd_kernel
        kernel[lambda meta: (cdiv(n, meta["BLOCK_SIZE"]),)](
            p, g, n, float(lr), float(weight_decay), SIZE=next_power_of_2(n), **blocks
        )


def launch_normalize(x, y, blocks):
    """Write the rows of `x` (M, N), whose last dimension is contiguous, divided by their lengths."""
    M, N = x.shape
    if x.numel():
        normalize_kernel[(M,)](x, y, N, x.stride(0), y.stride(0), **blocks)


def column_sum(x: torch.Tensor, blocks: Blocks | None = None) -> torch.Tensor:
    """Return the sum of each column, (N,) float32; the order of addition is not fixed.

    x: (M, N), float32, float16 or bfloat16, any strides. Raises `TypeError` for another dtype, `ValueError` for another
    shape, and where `x` would need a gradient.
    """
    check_dtype("column_sum", FLOATS, x=x)
    check_shape("column_sum", x=(x, ("M", "N")))
    check_no_gradient("column_sum", x=x)
    out = torch.empty(x.shape[1], dtype=torch.float32, device=x.device)
    launch_column_sum(x, out, blocks or Blocks())
    return out


def column_max(x: torch.Tensor, blocks: Blocks | None = None) -> torch.Tensor:
    """Return the maximum of each column, (N,) int32; that of no rows is the least int32.

    x: (M, N) int32, any strides. Raises `TypeError` for another dtype, `ValueError` for another shape.
    """
    check_dtype("column_max", (torch.int32,), x=x)
    check_shape("column_max", x=(x, ("M", "N")))
    out = torch.empty(x.shape[1], dtype=torch.int32, device=x.device)
    launch_column_max(x, out, blocks or Blocks())
    return out


def sgd_step(
    p: torch.Tensor, g: torch.Tensor, lr: float, weight_decay: float = 0.0, blocks: Blocks | None = None
) -> torch.Tensor:
    """Update `p` in place by its gradient `g` and return it.

    Both of one shape and dtype, float32, float16 or bfloat16, contiguous. Raises `TypeError` for another dtype,
    `ValueError` for other shapes, layouts or devices.
    """
    check_device("sgd_step", p=p, g=g)
    check_dtype("sgd_step", FLOATS, p=p, g=g)
    check_shape("sgd_step", g=(g, p.shape))
    check_contiguous("sgd_step", p=p, g=g)
    launch_sgd_step(p, g, lr, weight_decay, p, blocks or Blocks())
    return p


def normalize(x: torch.Tensor, blocks: Blocks | None = None) -> torch.Tensor:
    """Return each row divided by its Euclidean length, contiguous; a row of zeros gives NaN.

    x: (M, N), float32, float16 or bfloat16, last dimension contiguous, N at most 65,536. `blocks` holds launch options
    alone: sizes follow from N. Raises `TypeError` for another dtype, `ValueError` for another shape or layout.
    """
    check_dtype("normalize", FLOATS, x=x)
    check_shape("normalize", x=(x, ("M", "N")))
    check_no_gradient("normalize", x=x)
    if x.shape[1] > 65536:
        raise ValueError(f"normalize: rows of {x.shape[1]}; at most 65536 are taken, which one program can hold")
    if x.shape[1] > 1 and x.stride(1) != 1:
        raise ValueError(f"normalize: x has strides {x.stride()}; 1 in the last dimension is taken")
    y = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    launch_normalize(x, y, blocks or Blocks())
    return y


def column_sum_reference(x):
    return x.sum(0)


def column_max_reference(x):
    return x.amax(0) if len(x) else x.new_full(x.shape[1:], LEAST)


def sgd_step_reference(p, g, lr, weight_decay):
    return p.sub_(lr * (g + weight_decay * p))


def normalize_reference(x):
    return x / x.square().sum(1, keepdim=True).sqrt()


def _matrix(M, N, layout=lambda d, x: x):
    return lambda d: (layout(d, d.normal(M, N)),)


def _parameters(*shape):
    return lambda d: (d.normal(*shape), d.normal(*shape), 0.1, 0.01)


def _below_zero(d: Draw):
    """Maxima below zero: what an output that begins at 0 would hide."""
    return (d.integers(70, 33, low=-100, high=-1),)


COLUMNS = (
    Sample("0x5", _matrix(0, 5)),
    Sample("1x1", _matrix(1, 1)),
    Sample("133x77", _matrix(133, 77), quick=True),
    Sample("64x128", _matrix(64, 128)),
    Sample("40x50-transposed", _matrix(40, 50, layout=lambda d, x: d.transposed(x))),
)

CASES = [
    KernelCase(
        name="autotuned_column_sum",
        operator=column_sum,
        launch=launch_column_sum,
        reference=column_sum_reference,
        chain=lambda x: x.sum(0, dtype=torch.float32),
        samples=(*COLUMNS, Sample("65536x4096", _matrix(65536, 4096), bench=True)),
        dtypes=("float32", "float16", "bfloat16"),
        cost=lambda x, out: Cost(x.numel() * x.element_size() + 4 * out.numel(), flops=x.numel()),
        sweep=Sweep(powers_of_2(6, 16), lambda d, n: _matrix(n, 4096)(d), "rows of 4096"),
        deterministic=False,
    ),
    KernelCase(
        name="autotuned_column_max",
        operator=column_max,
        launch=launch_column_max,
        reference=column_max_reference,
        samples=(*COLUMNS, Sample("70x33-below-zero", _below_zero)),
        dtypes=("int32",),
        cost=lambda x, out: Cost(x.numel() * 4 + 4 * out.numel()),
    ),
    KernelCase(
        name="autotuned_sgd_step",
        operator=sgd_step,
        launch=launch_sgd_step,
        reference=sgd_step_reference,
        terms=lambda p, g, lr, weight_decay: p.abs() + lr * (g.abs() + weight_decay * p.abs()),
        samples=(
            Sample("0", _parameters(0)),
            Sample("1", _parameters(1)),
            Sample("7x781", _parameters(7, 781), quick=True),
            Sample("8192", _parameters(8192)),  # whole blocks of every configuration
            Sample("4097", _parameters(4097)),
        ),
        dtypes=("float32", "float16", "bfloat16"),
        mutates=(0,),
    ),
    KernelCase(
        name="heuristics_normalize",
        operator=normalize,
        launch=launch_normalize,
        reference=normalize_reference,
        samples=(
            Sample("0x5", _matrix(0, 5)),
            Sample("1x1", _matrix(1, 1)),
            Sample("5x781", _matrix(5, 781), quick=True),
            Sample("3x1024", _matrix(3, 1024)),
            Sample("4x100-of-130", lambda d: (d.normal(4, 130)[:, 7:107],)),
            Sample("16384x4096", _matrix(16384, 4096), bench=True),
        ),
        dtypes=("float32", "float16", "bfloat16"),
        cost=lambda x, y: Cost(2 * x.numel() * x.element_size(), flops=3 * x.numel()),
        sweep=Sweep(powers_of_2(6, 16), lambda d, n: _matrix(4096, n)(d), "columns of 4096 rows"),
    ),
]
