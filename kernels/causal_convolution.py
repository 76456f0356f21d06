"""Causal convolution of each channel along time (Mamba's, 2023): out[t, c] = Σ_k w[c, k] · x[t - k, c], x = 0 before 0.

Written twice, apart in one word: `range` is a loop, `static_range` is written out by the compiler, TAPS times. Written
out, all loads can be under way at once, which takes registers and code; how many, the resources of both cases say.
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
    check_no_gradient,
    check_shape,
)


@triton.jit
def convolution_range_kernel(
    x_ptr, w_ptr, out_ptr, T, C, TAPS: tl.constexpr, BLOCK_T: tl.constexpr, BLOCK_C: tl.constexpr
):  # fmt: skip
    """Each program computes BLOCK_T times of BLOCK_C channels of one sequence."""
    first, t, c = place(T, C, BLOCK_T, BLOCK_C)
    out = tl.zeros((BLOCK_T, BLOCK_C), dtype=tl.float32)
    for k in range(TAPS):
        out += tap(x_ptr, w_ptr, first, t, c, k, T, C, TAPS)
    store(out_ptr, first, t, c, T, C, out)


@triton.jit
def convolution_static_range_kernel(
    x_ptr, w_ptr, out_ptr, T, C, TAPS: tl.constexpr, BLOCK_T: tl.constexpr, BLOCK_C: tl.constexpr
):  # fmt: skip
    """The same, written out."""
    first, t, c = place(T, C, BLOCK_T, BLOCK_C)
    out = tl.zeros((BLOCK_T, BLOCK_C), dtype=tl.float32)
    for k in tl.static_range(TAPS):
        out += tap(x_ptr, w_ptr, first, t, c, k, T, C, TAPS)
    store(out_ptr, first, t, c, T, C, out)


@triton.jit
def place(T, C, BLOCK_T: tl.constexpr, BLOCK_C: tl.constexpr):
    """Return where this program's sequence begins, its times as a column and its channels as a row."""
    blocks = tl.cdiv(T, BLOCK_T)
    first = (tl.program_id(0) // blocks).to(tl.int64) * T * C
    t = (tl.program_id(0) % blocks) * BLOCK_T + tl.arange(0, BLOCK_T)
    c = tl.program_id(1) * BLOCK_C + tl.arange(0, BLOCK_C)
    return first, t[:, None].to(tl.int64), c[None, :]


@triton.jit
def tap(x_ptr, w_ptr, first, t, c, k, T, C, TAPS: tl.constexpr):
    """Return w[c, k] · x[t - k, c]."""
    x_mask = (t - k >= 0) & (t - k < T) & (c < C)
    x = tl.load(x_ptr + first + (t - k) * C + c, mask=x_mask, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + c * TAPS + k, mask=c < C, other=0.0).to(tl.float32)
    return w * x


@triton.jit
def store(out_ptr, first, t, c, T, C, out):
    """Store the program's tile."""
    tl.store(out_ptr + first + t * C + c, out.to(out_ptr.dtype.element_ty), mask=(t < T) & (c < C))


def launch_convolution_range(x, w, out, blocks):
    """Write the convolution of `x` (batch, T, C)."""
    _launch(convolution_range_kernel, x, w, out, blocks)


def launch_convolution_static_range(x, w, out, blocks):
    """Write the convolution of `x` (batch, T, C)."""
    _launch(convolution_static_range_kernel, x, w, out, blocks)


def _launch(kernel, x, w, out, blocks):
    batch, T, C = x.shape
    if x.numel():
        grid = (batch * cdiv(T, blocks["BLOCK_T"]), cdiv(C, blocks["BLOCK_C"]))
        kernel[grid](x, w, out, T, C, TAPS=w.shape[1], **blocks)


def convolution_range(x: torch.Tensor, w: torch.Tensor, blocks: Blocks | None = None) -> torch.Tensor:
    """Return the causal convolution of each channel, (batch, T, C), its taps in a loop.

    x  (batch, T, C), float32, float16 or bfloat16, contiguous
    w  (C, taps), the same dtype, contiguous; w[:, 0] meets the present

    Raises `TypeError` for another dtype, `ValueError` for other shapes, layouts or devices, and for a gradient.
    """
    out = _check("convolution_range", x, w)
    launch_convolution_range(x, w, out, blocks or blocks_for("convolution_range", x))
    return out


def convolution_static_range(x: torch.Tensor, w: torch.Tensor, blocks: Blocks | None = None) -> torch.Tensor:
    """Return what `convolution_range` does, its taps written out."""
    out = _check("convolution_static_range", x, w)
    launch_convolution_static_range(x, w, out, blocks or blocks_for("convolution_static_range", x))
    return out


def _check(operator, x, w):
    check_device(operator, x=x, w=w)
    check_dtype(operator, FLOATS, x=x, w=w)
    check_shape(operator, x=(x, ("batch", "T", "C")))
    check_shape(operator, w=(w, (x.shape[2], "taps")))
    check_contiguous(operator, x=x, w=w)
    check_no_gradient(operator, x=x, w=w)
    return torch.empty_like(x)


def convolution_reference(x, w):
    out = torch.zeros_like(x)
    for k in range(min(w.shape[1], x.shape[1])):
        out[:, k:] += w[:, k] * x[:, : x.shape[1] - k]
    return out


def _operands(batch, T, C, taps):
    return lambda d: (d.normal(batch, T(d) if callable(T) else T, C), d.normal(C, taps))


def _past_a_block(d: Draw) -> int:
    return d.blocks["BLOCK_T"] + 1


_SHARED = {
    "reference": convolution_reference,
    "samples": (
        Sample("0x3x5-taps4", _operands(0, 3, 5, 4)),
        Sample("1x1x1-taps1", _operands(1, 1, 1, 1)),
        Sample("2x33x77-taps4", _operands(2, 33, 77, 4), quick=True),
        Sample("1x64x64-taps8", _operands(1, 64, 64, 8)),
        Sample("2xblock-plus-1x3-taps3", _operands(2, _past_a_block, 3, 3)),
        Sample("3x2x9-taps5", _operands(3, 2, 9, 5)),  # more taps than times: a sequence must not read the one before
        Sample("8x4096x4096-taps4", _operands(8, 4096, 4096, 4), bench=True),
    ),
    "dtypes": ("float32", "float16", "bfloat16"),
    "cost": lambda x, w, out: Cost((2 * x.numel() + w.numel()) * x.element_size(), flops=2 * x.numel() * w.shape[1]),
    "sweep": Sweep(powers_of_2(6, 13), lambda d, n: _operands(8, n, 4096, 4)(d), "times of 8 x 4096 channels, 4 taps"),
    "blocks": Blocks(BLOCK_T=16, BLOCK_C=64, num_warps=4),
    "space": {"BLOCK_T": (8, 16, 32, 64), "BLOCK_C": (32, 64, 128), "num_warps": (2, 4, 8)},
}

CASES = [
    KernelCase(name="convolution_range", operator=convolution_range, launch=launch_convolution_range, **_SHARED),
    KernelCase(
        name="convolution_static_range",
        operator=convolution_static_range,
        launch=launch_convolution_static_range,
        **_SHARED,
    ),
]
