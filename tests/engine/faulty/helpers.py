"""What kernels of another module use: a helper that calls a helper, and constants."""

import triton
import triton.language as tl

SLOPE = tl.constexpr(0.5)
NAMES = ("leaky", "plain")


@triton.jit
def scaled(x, by: tl.constexpr):
    return x * by


@triton.jit
def leaky(x):
    """x where it is positive, and a part of it elsewhere."""
    return tl.where(x > 0, x, scaled(x, SLOPE))
