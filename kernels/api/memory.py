"""Loads and stores: masks, shapes, cache and eviction hints, and pointers that are themselves data."""

from functools import partial

import torch
import triton
import triton.language as tl

from portability.kernels.api._probe import ALL, BLOCK, ROWS, called, empty, normals, probe

memory = partial(probe, group="memory", relative=0.0)
copied = partial(memory, reference=torch.clone, BLOCK=BLOCK)

RAGGED = BLOCK - 7  # elements of a tensor that does not fill its block
FILL = 3


@triton.jit
def identity(x):
    return x


@triton.jit
def mask_kernel(x_ptr, out_ptr, n: tl.constexpr, BLOCK: tl.constexpr):
    """out = x, whose n elements are fewer than the block's."""
    offsets = tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask), mask=mask)


@triton.jit
def other_kernel(x_ptr, out_ptr, n: tl.constexpr, FILL: tl.constexpr, BLOCK: tl.constexpr):
    """out = x, and FILL beyond its n elements."""
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=offsets < n, other=FILL))


@triton.jit
def scalar_kernel(x_ptr, out_ptr):
    """One element."""
    tl.store(out_ptr, tl.load(x_ptr))


@triton.jit
def int64_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    """out = x, with offsets of 64 bits."""
    offsets = tl.arange(0, BLOCK).to(tl.int64)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets))


@triton.jit
def load_cache_kernel(x_ptr, out_ptr, MODIFIER: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, cache_modifier=MODIFIER))


@triton.jit
def load_eviction_kernel(x_ptr, out_ptr, POLICY: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, eviction_policy=POLICY))


@triton.jit
def load_volatile_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, volatile=True))


@triton.jit
def store_cache_kernel(x_ptr, out_ptr, MODIFIER: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets), cache_modifier=MODIFIER)


@triton.jit
def store_eviction_kernel(x_ptr, out_ptr, POLICY: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets), eviction_policy=POLICY)


@triton.jit
def gathered_kernel(x_ptr, index_ptr, out_ptr, BLOCK: tl.constexpr):
    """out[i] = x[index[i]]."""
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(x_ptr + tl.load(index_ptr + offsets)))


@triton.jit
def pointer_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    """out = x, whose address has been an integer in between."""
    offsets = tl.arange(0, BLOCK)
    pointer = x_ptr.to(tl.int64).to(tl.pointer_type(x_ptr.dtype.element_ty))
    tl.store(out_ptr + offsets, tl.load(pointer + offsets))


@triton.jit
def block_pointer_kernel(x_ptr, out_ptr, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """out = x, through block pointers."""
    x = tl.make_block_ptr(x_ptr, (ROWS, BLOCK), (BLOCK, 1), (0, 0), (ROWS, BLOCK), (1, 0))
    out = tl.make_block_ptr(out_ptr, (ROWS, BLOCK), (BLOCK, 1), (0, 0), (ROWS, BLOCK), (1, 0))
    tl.store(out, tl.load(x))


@triton.jit
def advance_kernel(x_ptr, out_ptr, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """The second half of the columns of x, through a block pointer that is moved there."""
    HALF: tl.constexpr = BLOCK // 2
    x = tl.make_block_ptr(x_ptr, (ROWS, BLOCK), (BLOCK, 1), (0, 0), (ROWS, HALF), (1, 0))
    out = tl.make_block_ptr(out_ptr, (ROWS, HALF), (HALF, 1), (0, 0), (ROWS, HALF), (1, 0))
    tl.store(out, tl.load(tl.advance(x, (0, HALF))))


def filled(x):
    return torch.cat([x, torch.full((BLOCK - RAGGED,), FILL, dtype=x.dtype, device=x.device)])


def indexed(draw):
    return draw.normal(BLOCK), draw.integers(BLOCK, low=0, high=BLOCK, dtype=torch.int32)


CASES = [
    called(
        ("tl.load", "tl.store"), identity, torch.clone, name="tl.load", dtypes=ALL, group="memory", relative=0.0
    ),
    called(
        ("tl.load", "tl.store"), identity, torch.clone, name="tl.load.2d", dtypes=("float32", "float16", "int8"),
        rows=ROWS,
        group="memory", relative=0.0,
    ),
    memory("tl.load", scalar_kernel, lambda x: x[0], name="tl.load.scalar", out=empty(), dtypes=("float32", "int8")),
    copied(
        ("tl.load", "tl.store"), mask_kernel, name="tl.load.mask", inputs=lambda d: (d.normal(RAGGED),),
        dtypes=("float32", "float16", "float64", "int32", "int8", "bool"), n=RAGGED,
    ),
    memory(
        "tl.load", other_kernel, filled, name="tl.load.other", inputs=lambda d: (d.normal(RAGGED),), out=empty(BLOCK),
        dtypes=("float32", "float16", "bfloat16", "int32"), n=RAGGED, FILL=FILL, BLOCK=BLOCK,
    ),
    memory(
        "tl.load", gathered_kernel, lambda x, index: x[index.long()], name="tl.load.indexed", inputs=indexed,
        dtypes=("float32", "float16", "int8"), BLOCK=BLOCK,
    ),
    copied("tl.load", int64_kernel, name="tl.load.int64_offsets", dtypes=("float32",)),
    copied("tl.load", load_volatile_kernel, name="tl.load.volatile", dtypes=("float32", "float16")),
    *(
        copied("tl.load", load_cache_kernel, name=f"tl.load.cache_modifier{m}", dtypes=("float32",), MODIFIER=m)
        for m in (".ca", ".cg", ".cv")
    ),
    *(
        copied("tl.load", load_eviction_kernel, name=f"tl.load.eviction_policy.{p}", dtypes=("float32",), POLICY=p)
        for p in ("evict_first", "evict_last")
    ),
    *(
        copied("tl.store", store_cache_kernel, name=f"tl.store.cache_modifier{m}", dtypes=("float32",), MODIFIER=m)
        for m in (".wb", ".cg", ".cs", ".wt")
    ),
    *(
        copied("tl.store", store_eviction_kernel, name=f"tl.store.eviction_policy.{p}", dtypes=("float32",), POLICY=p)
        for p in ("evict_first", "evict_last")
    ),
    copied("tl.pointer_type", pointer_kernel, dtypes=("float32", "int8")),
    copied(
        "tl.make_block_ptr", block_pointer_kernel, inputs=normals(1, ROWS), dtypes=("float32", "float16"), ROWS=ROWS
    ),
    memory(
        "tl.advance", advance_kernel, lambda x: x[:, BLOCK // 2 :], inputs=normals(1, ROWS), dtypes=("float32",),
        out=empty(ROWS, BLOCK // 2), ROWS=ROWS, BLOCK=BLOCK,
    ),
]  # fmt: skip
