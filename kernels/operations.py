"""What kernels share: operations on blocks that are in registers, and the order of tiles."""

import triton
import triton.language as tl


@triton.jit
def sigmoid(x):
    """σ(x) = 1 / (1 + exp(-x)); exp overflows to infinity, which gives the right 0."""
    return 1.0 / (1.0 + tl.exp(-x))


@triton.jit
def activate(x, ACTIVATION: tl.constexpr):
    """The activation of that name of a float32 block; "" is none. Epilogues of other kernels use it too."""
    if ACTIVATION == "relu":
        x = tl.where(x < 0.0, 0.0, x)  # and not a maximum, which loses NaN
    elif ACTIVATION == "silu":
        x = x * sigmoid(x)
    elif ACTIVATION == "gelu":
        x = 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476))  # x · Φ(x), with Φ the normal distribution
    else:
        tl.static_assert(ACTIVATION == "", "no activation of that name")
    return x


@triton.jit
def is_nan(x):
    """NaN is the one value that is not equal to itself."""
    return x != x  # noqa: PLR0124


@triton.jit
def widen(x):
    """float16, bfloat16 and float8 as float32, in which they are computed; others as they are."""
    if x.dtype.is_floating():  # noqa: SIM102 - `and` of two bools does not compile under triton-ascend's Triton 3.2
        if tl.constexpr(x.dtype.primitive_bitwidth) < 32:
            x = x.to(tl.float32)
    return x


@triton.jit
def compute(x, y, OPERATION: tl.constexpr):
    """The operation of that name, in the dtype of its operands or in float32 if that is narrower."""
    if OPERATION != "copy":
        x, y = widen(x), widen(y)
    if OPERATION == "copy":
        out = x
    elif OPERATION == "neg":
        out = -x
    elif OPERATION == "add":
        out = x + y
    elif OPERATION == "sub":
        out = x - y
    elif OPERATION == "mul":
        out = x * y
    elif OPERATION == "div":
        out = x / y
    elif OPERATION == "maximum":
        out = tl.where((y < x) | is_nan(x), x, y)  # NaN in either gives NaN, as in torch: no comparison with it holds
    elif OPERATION == "minimum":
        out = tl.where((x < y) | is_nan(x), x, y)
    elif OPERATION == "relu_backward":  # x is the operand of relu, y the gradient of its result
        out = tl.where(x > 0.0, y, 0.0)
    elif OPERATION == "silu_backward":
        out = y * sigmoid(x) * (1.0 + x * (1.0 - sigmoid(x)))
    elif OPERATION == "gelu_backward":  # Φ(x) + x · φ(x), with φ the density
        out = y * (0.5 * (1.0 + tl.erf(x * 0.7071067811865476)) + x * 0.3989422804014327 * tl.exp(-0.5 * x * x))
    else:
        out = activate(x, OPERATION)
    return out


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
