"""Random numbers, against Philox computed anew in Python.

Salmon, Moraes, Dror and Shaw, Parallel random numbers: as easy as 1, 2, 3, SC 2011: Philox 4×32-10 and 4×64-10.
"""

from functools import partial

import torch
import triton
import triton.language as tl

from portability.kernels.api._probe import BLOCK, between, empty, probe

SEED = 1234567
ROUNDS = {32: (0xD2511F53, 0xCD9E8D57, 0x9E3779B9, 0xBB67AE85)}
ROUNDS[64] = (0xD2E7470EE14C6C93, 0xCA5A826395121157, 0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B)

drawn = partial(probe, group="random", relative=0.0, BLOCK=BLOCK)


@triton.jit
def one_kernel(x_ptr, out_ptr, NAME: tl.constexpr, SEED: tl.constexpr, BLOCK: tl.constexpr):
    """out = tl.NAME(SEED, x)."""
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, getattr(tl, NAME)(SEED, tl.load(x_ptr + offsets)))


@triton.jit
def four_kernel(x_ptr, out_ptr, NAME: tl.constexpr, SEED: tl.constexpr, BLOCK: tl.constexpr):
    """out = the four blocks of tl.NAME(SEED, x)."""
    offsets = tl.arange(0, BLOCK)
    a, b, c, d = getattr(tl, NAME)(SEED, tl.load(x_ptr + offsets))
    tl.store(out_ptr + offsets, a)
    tl.store(out_ptr + BLOCK + offsets, b)
    tl.store(out_ptr + 2 * BLOCK + offsets, c)
    tl.store(out_ptr + 3 * BLOCK + offsets, d)


@triton.jit
def philox_kernel(x_ptr, out_ptr, SEED: tl.constexpr, BLOCK: tl.constexpr):
    """out = the four blocks of Philox with the counter (x, 0, 0, 0)."""
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    a, b, c, d = tl.philox(SEED, x, x * 0, x * 0, x * 0)
    tl.store(out_ptr + offsets, a)
    tl.store(out_ptr + BLOCK + offsets, b)
    tl.store(out_ptr + 2 * BLOCK + offsets, c)
    tl.store(out_ptr + 3 * BLOCK + offsets, d)


@triton.jit
def philox_impl_kernel(x_ptr, out_ptr, SEED: tl.constexpr, BLOCK: tl.constexpr):
    """The same, with the key given as two words."""
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    a, b, c, d = tl.philox_impl(x, x * 0, x * 0, x * 0, x * 0 + SEED, x * 0)
    tl.store(out_ptr + offsets, a)
    tl.store(out_ptr + BLOCK + offsets, b)
    tl.store(out_ptr + 2 * BLOCK + offsets, c)
    tl.store(out_ptr + 3 * BLOCK + offsets, d)


@triton.jit
def uniform_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    """out = the words x as numbers in [0, 1)."""
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.uint_to_uniform_float(tl.load(x_ptr + offsets)))


@triton.jit
def pair_kernel(x_ptr, y_ptr, a_ptr, b_ptr, BLOCK: tl.constexpr):
    """a, b = two normal numbers from two uniform ones."""
    offsets = tl.arange(0, BLOCK)
    a, b = tl.pair_uniform_to_normal(tl.load(x_ptr + offsets), tl.load(y_ptr + offsets))
    tl.store(a_ptr + offsets, a)
    tl.store(b_ptr + offsets, b)


def philox(counter, seed, bits=32):
    """Ten rounds on the counter (c, 0, 0, 0) with the seed as key: four words."""
    a, b, key_a, key_b = ROUNDS[bits]
    word = 2**bits - 1
    c0, c1, c2, c3 = counter & 0xFFFFFFFF if bits == 32 else counter, counter >> 32 if bits == 32 else 0, 0, 0
    k0, k1 = seed & word, seed >> bits
    for _ in range(10):
        c0, c1, c2, c3 = (b * c2 >> bits) ^ c1 ^ k0, b * c2 & word, (a * c0 >> bits) ^ c3 ^ k1, a * c0 & word
        k0, k1 = k0 + key_a & word, k1 + key_b & word
    return c0, c1, c2, c3


def words(x, bits=32):
    """The four blocks of words for the counters x."""
    columns = [philox(c, SEED, bits) for c in x.tolist()]
    return [list(column) for column in zip(*columns, strict=True)]


def uniform(word, bits=32):
    """A word as a number in [0, 1): its magnitude as a signed integer, scaled."""
    signed = word - 2**bits if word >= 2 ** (bits - 1) else word
    return (-signed - 1 if signed < 0 else signed) * (4.6566127342e-10 if bits == 32 else 1.0842020432385337e-19)


def pair(u1, u2):
    """Box and Muller's transform."""
    radius, angle = torch.sqrt(-2 * torch.log(u1.clamp(min=1e-7))), 2 * torch.pi * u2
    return radius * torch.cos(angle), radius * torch.sin(angle)


def integers(x, count):
    """`count` blocks of int32."""
    flat = [w - 2**32 if w >= 2**31 else w for block in words(x)[:count] for w in block]
    return torch.tensor(flat, dtype=torch.int64).to(torch.int32)


def uniforms(x, count):
    return torch.tensor([uniform(w) for block in words(x)[:count] for w in block], dtype=torch.float64)


def normals(x, count):
    u = uniforms(x, 4).reshape(4, BLOCK)
    return torch.cat([*pair(u[0], u[1]), *pair(u[2], u[3])][:count])


def counters(draw):
    """Counters over the positive range of 32 bits, or beyond it where the dtype is wider."""
    high = 2**40 if draw.dtype.itemsize == 8 else 2**31 - 1
    return (draw.integers(BLOCK, low=0, high=high),)


def blocks_of_words(x):
    """What `tl.philox` gives for 32 or 64 bits, in the dtype of the counters."""
    bits = 8 * x.dtype.itemsize
    flat = [w for block in words(x, bits) for w in block]
    signed = [w - 2**bits if x.dtype.is_signed and w >= 2 ** (bits - 1) else w for w in flat]
    return torch.tensor(signed, dtype=x.dtype)


def generator(name, reference, count, dtype, **more):
    """The probe of a generator of `count` blocks, 1 or 4."""
    kernel = one_kernel if count == 1 else four_kernel
    return drawn(
        f"tl.{name}", kernel, partial(reference, count=count), inputs=counters, out=empty(count * BLOCK, dtype=dtype),
        dtypes=("int32", "int64") if name == "randint" else ("int32",), NAME=name, SEED=SEED, **more,
    )  # fmt: skip


def all_words(draw):
    """Words over the whole range."""
    return (draw.integers(BLOCK, low=torch.iinfo(draw.dtype).min, high=min(torch.iinfo(draw.dtype).max, 2**63 - 1)),)


def scaled(x):
    bits = 8 * x.dtype.itemsize
    return torch.tensor([uniform(w % 2**bits, bits) for w in x.tolist()], dtype=torch.float64)


CASES = [
    generator("randint", integers, 1, torch.int32),
    generator("randint4x", integers, 4, torch.int32),
    generator("rand", uniforms, 1, torch.float32, relative=1.0),
    generator("rand4x", uniforms, 4, torch.float32, relative=1.0),
    # An angle of up to 2π is off by a few units of its magnitude, and so is its cosine.
    generator("randn", normals, 1, torch.float32, absolute=8.0),
    generator("randn4x", normals, 4, torch.float32, absolute=8.0),
    drawn(
        "tl.philox", philox_kernel, blocks_of_words, inputs=counters, out=empty(4 * BLOCK),
        dtypes=("int32", "uint32", "uint64"), SEED=SEED,
    ),
    drawn(
        "tl.philox_impl", philox_impl_kernel, blocks_of_words, inputs=counters, out=empty(4 * BLOCK),
        dtypes=("uint32", "uint64"), SEED=SEED,
    ),
    drawn(
        "tl.uint_to_uniform_float", uniform_kernel, scaled, inputs=all_words, out=empty(BLOCK, dtype=torch.float32),
        dtypes=("int32", "uint32", "int64", "uint64"), relative=1.0,
    ),
    drawn(
        "tl.pair_uniform_to_normal", pair_kernel, pair, inputs=between(0.01, 1.0, 2),
        out=lambda x, y: (torch.empty_like(x), torch.empty_like(y)), dtypes=("float32",), absolute=8.0,
    ),
]  # fmt: skip
