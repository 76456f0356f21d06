"""The methods of a tensor, each called as one."""

from functools import partial

import torch
import triton
import triton.language as tl

from portability.kernels.api._probe import (
    BLOCK,
    ROWS,
    between,
    called,
    empty,
    folded,
    load_block,
    magnitude,
    powers,
    probe,
    store_block,
)

method = partial(called, group="methods", relative=0.0, dtypes=("float32",))
rows = partial(method, rows=ROWS)

SPREAD, POSITIVE = between(-4.0, 4.0), between(0.25, 4.0)
BINS = 16


@triton.jit
def elementwise_kernel(x_ptr, out_ptr, NAME: tl.constexpr, BLOCK: tl.constexpr):
    """out = x.NAME()."""
    store_block(out_ptr, getattr(load_block(x_ptr, 0, BLOCK), NAME)())


@triton.jit
def flip(x):
    return x.flip(0)


@triton.jit
def ravel(x):
    return x.ravel()


@triton.jit
def sort(x):
    return x.sort()


@triton.jit
def sigmoid(x):
    return x.sigmoid()


@triton.jit
def softmax(x):
    return x.softmax()


@triton.jit
def sum_rows(x):
    return x.sum(axis=1)


@triton.jit
def max_rows(x):
    return x.max(axis=1)


@triton.jit
def min_rows(x):
    return x.min(axis=1)


@triton.jit
def argmax(x):
    return x.argmax(axis=1)


@triton.jit
def argmin(x):
    return x.argmin(axis=1)


@triton.jit
def cumsum(x):
    return x.cumsum(axis=1)


@triton.jit
def cumprod(x):
    return x.cumprod(axis=1)


@triton.jit
def xor_sum(x):
    return x.xor_sum(axis=1)


@triton.jit
def reduce_or(x):
    return x.reduce_or(axis=1)


@triton.jit
def broadcast_to(x):
    return x[None, :].broadcast_to(4, x.shape[0])


@triton.jit
def cast(x):
    return x.cast(tl.float16)


@triton.jit
def to(x):
    return x.to(tl.float16)


@triton.jit
def cdiv(x):
    return x.cdiv(7)


@triton.jit
def expand_dims(x):
    return x.expand_dims(0)


@triton.jit
def gather(x, index):
    return x.gather(index.to(tl.int32), axis=0)


@triton.jit
def histogram(x):
    return x.histogram(16)


@triton.jit
def item(x):
    return x.sum(0, keep_dims=True).item()


@triton.jit
def logical_and(x, y):
    return (x > 0).logical_and(y > 0)


@triton.jit
def logical_or(x, y):
    return (x > 0).logical_or(y > 0)


@triton.jit
def permute(x):
    return x.permute(1, 0)


@triton.jit
def trans(x):
    return x.trans()


@triton.jit
def property_t(x):
    return x.T


@triton.jit
def larger(a, b):
    return tl.maximum(a, b)


@triton.jit
def reduce(x):
    return x.reduce(1, larger)


@triton.jit
def associative_scan(x):
    return x.associative_scan(1, larger)


@triton.jit
def reshape(x):
    return x.reshape(x.shape[1], x.shape[0])


@triton.jit
def view(x):
    return x.view(x.shape[1], x.shape[0]).max()


@triton.jit
def split(x):
    left, right = x.reshape(x.shape[0], x.shape[1] // 2, 2).split()
    return left - right


def elementwise(name, reference, **more):
    """The probe of a method without arguments."""
    return probe(f"tensor.{name}", elementwise_kernel, reference, group="methods", NAME=name, BLOCK=BLOCK, **more)


def indexed(draw):
    """A block, and for each place of it another to take from."""
    return draw.normal(BLOCK), draw.integers(BLOCK, low=0, high=BLOCK, dtype=torch.int32)


F32 = ("float32",)
BOOL = empty(BLOCK, dtype=torch.bool)
INDEX = empty(ROWS, dtype=torch.int32)

CASES = [
    elementwise("abs", torch.abs, dtypes=F32, relative=0.0),
    elementwise("ceil", torch.ceil, dtypes=F32, relative=0.0),
    elementwise("floor", torch.floor, dtypes=F32, relative=0.0),
    elementwise("sqrt_rn", torch.sqrt, dtypes=F32, inputs=POSITIVE, relative=0.0),
    elementwise("cos", torch.cos, dtypes=F32, inputs=SPREAD, absolute=1.0),
    elementwise("sin", torch.sin, dtypes=F32, inputs=SPREAD, absolute=1.0),
    elementwise("erf", torch.erf, dtypes=F32, inputs=SPREAD),
    elementwise("exp", torch.exp, dtypes=F32, inputs=SPREAD, relative=2.0),
    elementwise("exp2", torch.exp2, dtypes=F32, inputs=SPREAD),
    elementwise("log", torch.log, dtypes=F32, inputs=POSITIVE, absolute=1.0),
    elementwise("log2", torch.log2, dtypes=F32, inputs=POSITIVE, absolute=1.0),
    elementwise("rsqrt", torch.rsqrt, dtypes=F32, inputs=POSITIVE),
    elementwise("sqrt", torch.sqrt, dtypes=F32, inputs=POSITIVE),
    method("tensor.flip", flip, lambda x: x.flip(0)),
    method("tensor.ravel", ravel, torch.clone),
    method("tensor.sort", sort, lambda x: x.sort().values),
    method("tensor.sigmoid", sigmoid, torch.sigmoid, inputs=SPREAD, relative=2.0),
    method("tensor.softmax", softmax, lambda x: torch.softmax(x, 0), relative=4.0),
    rows("tensor.sum", sum_rows, lambda x: x.sum(1), out=empty(ROWS), terms=lambda x: magnitude(x).sum(1)),
    rows("tensor.max", max_rows, lambda x: x.amax(1), out=empty(ROWS)),
    rows("tensor.min", min_rows, lambda x: x.amin(1), out=empty(ROWS)),
    rows("tensor.argmax", argmax, lambda x: x.argmax(1), out=INDEX),
    rows("tensor.argmin", argmin, lambda x: x.argmin(1), out=INDEX),
    rows("tensor.cumsum", cumsum, lambda x: x.cumsum(1), terms=lambda x: magnitude(x).cumsum(1)),
    rows("tensor.cumprod", cumprod, lambda x: x.cumprod(1), inputs=powers(ROWS)),
    rows("tensor.xor_sum", xor_sum, folded(torch.bitwise_xor), out=empty(ROWS), dtypes=("int32",)),
    rows("tensor.reduce_or", reduce_or, folded(torch.bitwise_or), out=empty(ROWS), dtypes=("int32",)),
    method("tensor.broadcast_to", broadcast_to, lambda x: x.expand(4, BLOCK), out=empty(4, BLOCK)),
    method("tensor.cast", cast, torch.clone, out=empty(BLOCK, dtype=torch.float16)),
    method("tensor.to", to, torch.clone, out=empty(BLOCK, dtype=torch.float16)),
    method("tensor.cdiv", cdiv, lambda x: (x + 6) // 7, inputs=between(0, 100), dtypes=("int32",)),
    method("tensor.expand_dims", expand_dims, lambda x: x[None], out=empty(1, BLOCK)),
    method("tensor.gather", gather, lambda x, index: x[index.long()], arity=2, inputs=indexed),
    method(
        "tensor.histogram", histogram, lambda x: torch.bincount(x, minlength=BINS), inputs=between(0, BINS),
        out=empty(BINS), dtypes=("int32",),
    ),
    method("tensor.item", item, torch.sum, out=empty(), dtypes=("int32",)),
    method("tensor.logical_and", logical_and, lambda x, y: (x > 0) & (y > 0), arity=2, out=BOOL),
    method("tensor.logical_or", logical_or, lambda x, y: (x > 0) | (y > 0), arity=2, out=BOOL),
    rows("tensor.permute", permute, torch.t, out=empty(BLOCK, ROWS)),
    rows("tensor.trans", trans, torch.t, out=empty(BLOCK, ROWS)),
    rows("tensor.T", property_t, torch.t, out=empty(BLOCK, ROWS)),
    rows("tensor.reduce", reduce, lambda x: x.amax(1), out=empty(ROWS)),
    rows("tensor.associative_scan", associative_scan, lambda x: x.cummax(1).values),
    rows("tensor.reshape", reshape, lambda x: x.reshape(BLOCK, ROWS), out=empty(BLOCK, ROWS)),
    rows("tensor.view", view, torch.max, out=empty()),
    rows("tensor.split", split, lambda x: x[:, 0::2] - x[:, 1::2], out=empty(ROWS, BLOCK // 2)),
]  # fmt: skip
