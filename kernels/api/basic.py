"""The names that nearly every kernel uses."""

from functools import partial

import torch
import triton
import triton.language as tl

from portability.kernels.api._probe import (
    BLOCK,
    FLOATS,
    INTEGERS,
    ROWS,
    called,
    empty,
    magnitude,
    named,
    nothing,
    positive,
    probe,
    rows,
)

NUMBERS = (*FLOATS, "int32", "int8", "int64", "uint8")
RAGGED = BLOCK - 7  # elements of a block that is not full
TILE = 32  # the smallest inner size that every target's `dot` of 8 bits takes

memory = partial(probe, group="memory")
model = partial(probe, group="programming_model", inputs=nothing, dtypes=("int32",))
shape = partial(probe, group="shape", inputs=rows, ROWS=ROWS, BLOCK=BLOCK)
reduction = partial(probe, group="reduction", inputs=rows, ROWS=ROWS, BLOCK=BLOCK)
math = partial(named, group="math")


@triton.jit
def masked_kernel(x_ptr, out_ptr, n: tl.constexpr, BLOCK: tl.constexpr):
    """out = x, whose n elements are fewer than the block's."""
    offsets = tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask, other=0)
    tl.store(out_ptr + offsets, x, mask=mask)


@triton.jit
def copy_2d_kernel(x_ptr, out_ptr, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """out = x, two-dimensional."""
    offsets = tl.arange(0, ROWS)[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :]
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets))


@triton.jit
def trans_kernel(x_ptr, out_ptr, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """out = xᵀ."""
    row, column = tl.arange(0, ROWS), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row[:, None] * BLOCK + column[None, :])
    tl.store(out_ptr + column[:, None] * ROWS + row[None, :], tl.trans(x))


@triton.jit
def reshape_kernel(x_ptr, out_ptr, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """out = x, flat."""
    x = tl.load(x_ptr + tl.arange(0, ROWS)[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :])
    tl.store(out_ptr + tl.arange(0, ROWS * BLOCK), tl.reshape(x, (ROWS * BLOCK,)))


@triton.jit
def broadcast_to_kernel(x_ptr, out_ptr, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """Every row of out is x."""
    column = tl.arange(0, BLOCK)[None, :]
    x = tl.broadcast_to(tl.load(x_ptr + column), (ROWS, BLOCK))
    tl.store(out_ptr + tl.arange(0, ROWS)[:, None] * BLOCK + column, x)


@triton.jit
def row_kernel(x_ptr, out_ptr, NAME: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """out = tl.NAME(x) along the rows."""
    row = tl.arange(0, ROWS)
    x = tl.load(x_ptr + row[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :])
    tl.store(out_ptr + row, getattr(tl, NAME)(x, axis=1))


@triton.jit
def program_id_kernel(out_ptr, AXIS: tl.constexpr):
    """Each program writes its index along one axis, at its place in a grid of 2 × 3 × 2."""
    x, y, z = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    tl.store(out_ptr + (x * 3 + y) * 2 + z, tl.program_id(AXIS))


@triton.jit
def arange_kernel(out_ptr, BLOCK: tl.constexpr):
    """out = 3, 4, 5, …"""
    tl.store(out_ptr + tl.arange(0, BLOCK), tl.arange(3, 3 + BLOCK))


@triton.jit
def full_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    """out = 3, in the dtype of x."""
    tl.store(out_ptr + tl.arange(0, BLOCK), tl.full((BLOCK,), 3, x_ptr.dtype.element_ty))


@triton.jit
def dot_kernel(x_ptr, y_ptr, acc_ptr, out_ptr, TILE: tl.constexpr):
    """out = x·y, or acc + x·y."""
    offsets = tl.arange(0, TILE)[:, None] * TILE + tl.arange(0, TILE)[None, :]
    x, y = tl.load(x_ptr + offsets), tl.load(y_ptr + offsets)
    acc = None if acc_ptr is None else tl.load(acc_ptr + offsets)
    tl.store(out_ptr + offsets, tl.dot(x, y, acc))


@triton.jit
def static_range_kernel(x_ptr, out_ptr, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """out = Σ of the rows of x, one after another."""
    column = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for row in tl.static_range(ROWS):
        total += tl.load(x_ptr + row * BLOCK + column)
    tl.store(out_ptr + column, total)


@triton.jit
def atomic_add_kernel(x_ptr, count_ptr, BLOCK: tl.constexpr):
    """count[i % 4] += x[i]."""
    offsets = tl.arange(0, BLOCK)
    tl.atomic_add(count_ptr + offsets % 4, tl.load(x_ptr + offsets))


@triton.jit
def where(x, y):
    return tl.where(x < y, x, y + y)


@triton.jit
def ceiling_division(x):
    return tl.cdiv(x, 7)


@triton.jit
def to_float32(x):
    return x.to(tl.float32)


@triton.jit
def to_float16(x):
    return x.to(tl.float16)


@triton.jit
def to_int32(x):
    return x.to(tl.int32)


def ids(axis):
    """Return the index along `axis` of every program of a grid of 2 × 3 × 2."""
    shape = [1, 1, 1]
    shape[axis] = -1
    return torch.arange((2, 3, 2)[axis], dtype=torch.int32).reshape(shape).expand(2, 3, 2)


def zeros(*size):
    """An output that starts at zero, since the kernel adds to it."""
    return lambda *inputs: torch.zeros(size, dtype=inputs[0].dtype, device=inputs[0].device)


def tiles(count):
    """`count` square tiles; the accumulator of a product has its own dtype."""

    def draw(d):
        a, b = d.normal(TILE, TILE), d.normal(TILE, TILE)
        return (a, b, d.normal(TILE, TILE, dtype=accumulator(d.dtype)))[:count]

    return draw


def accumulator(dtype):
    """The dtype in which `tl.dot` sums operands of `dtype`."""
    if not dtype.is_floating_point:
        return torch.int32
    return dtype if dtype is torch.float64 else torch.float32


def product(x, y, acc=0):
    wide = accumulator(x.dtype)
    return acc + (x @ y if x.is_floating_point() else x.to(wide) @ y.to(wide)).to(wide)


def dot_output(x, *_):
    return torch.empty(TILE, TILE, dtype=accumulator(x.dtype), device=x.device)


CASES = [
    memory(
        ("tl.load", "tl.store"), masked_kernel, torch.clone, name="tl.load.mask", dtypes=(*NUMBERS, "bool"),
        inputs=lambda d: (d.normal(RAGGED),), n=RAGGED, BLOCK=BLOCK,
    ),
    memory(
        ("tl.load", "tl.store"), copy_2d_kernel, torch.clone, name="tl.load.2d", dtypes=(*NUMBERS, "bool"),
        inputs=rows, ROWS=ROWS, BLOCK=BLOCK,
    ),
    math("exp", torch.exp),
    math("log", torch.log, inputs=positive, terms=lambda x: magnitude(torch.log(x)) + 1),
    math("sqrt", torch.sqrt, inputs=positive),
    math("maximum", torch.maximum, arity=2, dtypes=NUMBERS),
    math("minimum", torch.minimum, arity=2, dtypes=NUMBERS),
    reduction(
        "tl.sum", row_kernel, lambda x: x.sum(1).to(x.dtype), out=empty(ROWS), dtypes=NUMBERS, NAME="sum",
        terms=lambda x: magnitude(x).sum(1),
    ),
    reduction("tl.max", row_kernel, lambda x: x.amax(1), out=empty(ROWS), dtypes=NUMBERS, NAME="max"),
    reduction("tl.min", row_kernel, lambda x: x.amin(1), out=empty(ROWS), dtypes=NUMBERS, NAME="min"),
    *(
        model(
            "tl.program_id", program_id_kernel, partial(ids, axis), name=f"tl.program_id.{letter}", grid=(2, 3, 2),
            out=empty(2, 3, 2, dtype=torch.int32), AXIS=axis,
        )
        for axis, letter in enumerate("xyz")
    ),
    model(
        "tl.arange", arange_kernel, lambda: torch.arange(3, 3 + BLOCK, dtype=torch.int32),
        out=empty(BLOCK, dtype=torch.int32), BLOCK=BLOCK,
    ),
    called(
        "tl.cdiv", ceiling_division, lambda x: (x + 6) // 7, inputs=lambda d: (d.integers(BLOCK, low=0, high=100),),
        dtypes=("int32", "int64"), group="math",
    ),
    probe(
        "tl.full", full_kernel, lambda x: torch.full_like(x, 3), dtypes=NUMBERS, group="creation", BLOCK=BLOCK,
    ),
    shape(
        "tl.broadcast_to", broadcast_to_kernel, lambda x: x.expand(ROWS, BLOCK), inputs=lambda d: (d.normal(BLOCK),),
        out=empty(ROWS, BLOCK), dtypes=NUMBERS,
    ),
    shape("tl.reshape", reshape_kernel, torch.flatten, out=empty(ROWS * BLOCK), dtypes=NUMBERS),
    shape("tl.trans", trans_kernel, torch.t, out=empty(BLOCK, ROWS), dtypes=NUMBERS),
    called("tl.where", where, lambda x, y: torch.where(x < y, x, y + y), arity=2, dtypes=NUMBERS, group="indexing"),
    *(
        called(
            "tl.cast", function, lambda x, dtype=dtype: x.to(dtype), name=f"cast.{dtype}".replace("torch.", ""),
            out=empty(BLOCK, dtype=dtype), dtypes=(*FLOATS, *INTEGERS), group="cast",
        )
        for function, dtype in ((to_float32, torch.float32), (to_float16, torch.float16), (to_int32, torch.int32))
    ),
    probe(
        "tl.static_range", static_range_kernel, lambda x: x.sum(0), inputs=rows, out=empty(BLOCK), group="iterators",
        dtypes=("float32",), terms=lambda x: magnitude(x).sum(0), ROWS=ROWS, BLOCK=BLOCK,
    ),
    probe(
        "tl.atomic_add", atomic_add_kernel, lambda x: x.reshape(-1, 4).sum(0).to(x.dtype), out=zeros(4),
        dtypes=(*FLOATS, "int32", "int64", "uint32", "int8"), terms=lambda x: magnitude(x).reshape(-1, 4).sum(0),
        deterministic=False, group="atomics", BLOCK=BLOCK,
    ),
    *(
        probe(
            "tl.dot", dot_kernel, product, name=name, inputs=tiles(count), absent=3 - count, out=dot_output,
            dtypes=("float32", "float16", "bfloat16", "float64", "int8", "float8_e4m3fn", "float8_e5m2"),
            terms=lambda *tensors: product(*map(magnitude, tensors)), group="linear_algebra", TILE=TILE,
        )
        for name, count in (("tl.dot", 2), ("tl.dot.accumulate", 3))
    ),
]  # fmt: skip
