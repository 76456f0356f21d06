"""Matrix products: `dot` with its options, operands and sizes."""

import torch
import triton
import triton.language as tl

from portability.kernels.api._probe import FLOAT8, bound, empty, load_block, magnitude, probe, store_block

TILE = 32  # the smallest inner size that every target takes for operands of 8 bits


FN = None  # the product in question, which `bound` puts here


@triton.jit
def dot_kernel(x_ptr, y_ptr, z_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """out = FN(x, y) or FN(x, y, z), with x of M × K, y of K × N and z of M × N."""
    x, y = load_block(x_ptr, M, K), load_block(y_ptr, K, N)
    if z_ptr is None:
        store_block(out_ptr, FN(x, y))
    else:
        store_block(out_ptr, FN(x, y, load_block(z_ptr, M, N)))


@triton.jit
def precision_kernel(x_ptr, y_ptr, out_ptr, PRECISION: tl.constexpr, TILE: tl.constexpr):
    """out = x·y, with float32 operands taken to the named precision."""
    x, y = load_block(x_ptr, TILE, TILE), load_block(y_ptr, TILE, TILE)
    store_block(out_ptr, tl.dot(x, y, input_precision=PRECISION))


@triton.jit
def dot(x, y):
    return tl.dot(x, y)


@triton.jit
def accumulate(x, y, acc):
    return tl.dot(x, y, acc)


@triton.jit
def transposed(x, y):
    return tl.dot(x, tl.trans(y))


@triton.jit
def chained(x, y, z):
    """(x·y)·z, in which the first product is an operand that never was in memory."""
    return tl.dot(tl.dot(x, y).to(z.dtype), z)


@triton.jit
def batched(x, y):
    """Two products at once, of the upper rows by the left columns and of the lower by the right."""
    x = tl.reshape(x, (2, x.shape[0] // 2, x.shape[1]))
    y = tl.permute(tl.reshape(y, (y.shape[0], 2, y.shape[1] // 2)), (1, 0, 2))
    return tl.dot(x, y)


@triton.jit
def half_output(x, y):
    return tl.dot(x, y, out_dtype=tl.float16)


@triton.jit
def allow_tf32(x, y):
    return tl.dot(x, y, allow_tf32=True)


@triton.jit
def imprecise(x, y):
    return tl.dot(x, y, max_num_imprecise_acc=16)


def accumulator(dtype):
    """The dtype in which `tl.dot` sums operands of `dtype`."""
    if not dtype.is_floating_point:
        return torch.int32
    return dtype if dtype is torch.float64 else torch.float32


def tiles(count, m=TILE, n=TILE, k=TILE):
    """x of m × k, y of k × n, and where asked for an accumulator of m × n."""

    def draw(d):
        return (d.normal(m, k), d.normal(k, n), d.normal(m, n, dtype=accumulator(d.dtype)))[:count]

    return draw


def product(x, y, acc=0):
    """acc + x·y, the operands exactly as they are, the sum in the accumulator's dtype."""
    wide = accumulator(x.dtype)
    return acc + x.to(wide) @ y.to(wide)


def each_half(x, y):
    return product(x.reshape(2, TILE, TILE), y.reshape(TILE, 2, TILE).permute(1, 0, 2))


def terms(x, y, acc=None):
    return product(magnitude(x), magnitude(y), 0 if acc is None else magnitude(acc))


def dot_output(m=TILE, n=TILE):
    return lambda x, *_: torch.empty(m, n, dtype=accumulator(x.dtype), device=x.device)


def dots(name, function, *, reference=product, count=2, m=TILE, n=TILE, k=TILE, **more):
    """The probe of a product of one m × k by one k × n tile."""
    more = {"out": dot_output(m, n), "terms": terms, "inputs": tiles(count, m, n, k), **more}
    return probe(
        "tl.dot", bound(dot_kernel, function), reference, name=name, absent=3 - count, group="linear_algebra", M=m, N=n,
        K=k,
        **more,
    )  # fmt: skip


def eights(name, function, **more):
    """The probe of a product of float8, which some matrix units add up in less than float32."""
    return dots(
        name, function, **{"dtypes": ("float8_e4m3fn", "float8_e5m2"), "accumulates": "float8 products", **more}
    )


def precise(precision, accumulates):
    """The probe of a float32 product in a named precision, whose operands keep that many bits."""
    return probe(
        "tl.dot", precision_kernel, product, name=f"tl.dot.input_precision.{precision}", inputs=tiles(2), terms=terms,
        out=dot_output(), dtypes=("float32",), accumulates=accumulates, group="linear_algebra", PRECISION=precision,
        TILE=TILE,
    )  # fmt: skip


HALVES = ("float16", "bfloat16")
CASES = [
    dots("tl.dot", dot, dtypes=(*HALVES, "float64", "int8", "uint8")),
    dots("tl.dot.accumulate", accumulate, count=3, dtypes=(*HALVES, "float64", "int8")),
    eights("tl.dot.float8", dot, dtypes=FLOAT8),
    eights("tl.dot.float8.accumulate", accumulate, count=3),
    eights("tl.dot.float8.max_num_imprecise_acc", imprecise),
    eights("tl.dot.float8.m64n128", dot, m=64, n=128),
    eights(
        "tl.dot.float8.mixed", dot, dtypes=("float8_e4m3fn",),
        inputs=lambda d: (d.normal(TILE, TILE), d.normal(TILE, TILE, dtype=torch.float8_e5m2)),
    ),
    # What float32 means by default differs: tf32 on NVIDIA, xf32 on gfx942, float32 elsewhere.
    dots("tl.dot.float32", dot, dtypes=("float32",), accumulates="tf32"),
    dots("tl.dot.float32.accumulate", accumulate, count=3, dtypes=("float32",), accumulates="tf32"),
    dots("tl.dot.allow_tf32", allow_tf32, dtypes=("float32",), accumulates="tf32"),
    *(
        precise(name, accumulates)
        for name, accumulates in (
            ("ieee", "float32"), ("tf32", "tf32"), ("tf32x3", "tf32x3"), ("bf16x3", "bf16x3"), ("bf16x6", "float32")
        )
    ),
    dots("tl.dot.out_dtype", half_output, dtypes=("float16",), accumulates="float16", out=empty(TILE, TILE)),
    dots(
        "tl.dot.trans", transposed, reference=lambda x, y: product(x, y.t()), terms=lambda x, y: terms(x, y.t()),
        dtypes=(*HALVES, "int8"),
    ),
    dots(
        "tl.dot.chained", chained, count=3, inputs=lambda d: (*tiles(2)(d), d.normal(TILE, TILE)),
        reference=lambda x, y, z: product(product(x, y).to(z.dtype), z),
        terms=lambda x, y, z: terms(terms(x, y), z), accumulates="float16", dtypes=("float16",),
    ),
    dots(
        "tl.dot.batched", batched, m=2 * TILE, n=2 * TILE, reference=each_half,
        terms=lambda x, y: each_half(magnitude(x), magnitude(y)), out=empty(2, TILE, TILE, dtype=torch.float32),
        dtypes=HALVES,
    ),
    dots("tl.dot.k8", dot, m=16, n=16, k=8, dtypes=("float16",)),
    dots("tl.dot.m1", dot, m=1, n=16, k=32, dtypes=("float16", "int8")),
    dots("tl.dot.m64n128", dot, m=64, n=128, dtypes=(*HALVES, "int8")),
]  # fmt: skip
