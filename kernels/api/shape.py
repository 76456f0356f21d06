"""Shape manipulation."""

from functools import partial

import torch
import triton
import triton.language as tl

from portability.kernels.api._probe import BLOCK, ROWS, called, empty

block = partial(called, group="shape", relative=0.0, rows=ROWS)
flat = partial(called, group="shape", relative=0.0)

DTYPES = ("float32", "float16", "int8")
MORE = (*DTYPES, "float64", "bool")
SIZE = ROWS * BLOCK


@triton.jit
def broadcast(x, y):
    column, row = tl.broadcast(x[:, None], y[None, :])
    return column - row


@triton.jit
def broadcast_to(x):
    return tl.broadcast_to(x[None, :], (4, x.shape[0]))


@triton.jit
def expand_dims(x):
    return tl.expand_dims(x, 0)


@triton.jit
def expand_several_dims(x):
    return tl.expand_dims(x, (0, 2))


@triton.jit
def interleave(x, y):
    return tl.interleave(x, y)


@triton.jit
def join(x, y):
    return tl.join(x, y)


@triton.jit
def split(x):
    left, right = tl.split(tl.reshape(x, (x.shape[0], x.shape[1] // 2, 2)))
    return left - right


@triton.jit
def permute(x):
    return tl.permute(x, (1, 0))


@triton.jit
def permute_3d(x):
    return tl.permute(tl.reshape(x, (x.shape[0], x.shape[1] // 8, 8)), (2, 0, 1))


@triton.jit
def trans(x):
    return tl.trans(x)


@triton.jit
def trans_3d(x):
    return tl.trans(tl.reshape(x, (x.shape[0], x.shape[1] // 8, 8)), 1, 2, 0)


@triton.jit
def ravel(x):
    return tl.ravel(x)


@triton.jit
def reshape(x):
    return tl.reshape(x, (x.shape[1], x.shape[0]))


@triton.jit
def reshape_reordered(x):
    return tl.sum(tl.reshape(x, (x.numel,), can_reorder=True), axis=0)


@triton.jit
def view(x):
    return tl.sum(tl.view(x, (x.shape[1], x.shape[0])), axis=None)


@triton.jit
def squeeze(x):
    return tl.squeeze(tl.expand_dims(x, 1), 1)


@triton.jit
def unsqueeze(x):
    return tl.unsqueeze(x, 1)


CASES = [
    flat(
        "tl.broadcast", broadcast, lambda x, y: x[:, None] - y[None, :], arity=2, size=16, out=empty(16, 16),
        dtypes=DTYPES,
    ),
    flat("tl.broadcast_to", broadcast_to, lambda x: x.expand(4, BLOCK), out=empty(4, BLOCK), dtypes=MORE),
    flat("tl.expand_dims", expand_dims, lambda x: x[None], out=empty(1, BLOCK), dtypes=DTYPES),
    flat(
        "tl.expand_dims", expand_several_dims, lambda x: x[None, :, None], name="tl.expand_dims.several",
        out=empty(1, BLOCK, 1), dtypes=("float32",),
    ),
    flat(
        "tl.interleave", interleave, lambda x, y: torch.stack([x, y], 1).flatten(), arity=2, out=empty(2 * BLOCK),
        dtypes=DTYPES,
    ),
    flat("tl.join", join, lambda x, y: torch.stack([x, y], 1), arity=2, out=empty(BLOCK, 2), dtypes=DTYPES),
    flat("tl.squeeze", squeeze, torch.clone, dtypes=("float32", "int8")),
    flat("tl.unsqueeze", unsqueeze, lambda x: x[:, None], out=empty(BLOCK, 1), dtypes=("float32", "int8")),
    block("tl.split", split, lambda x: x[:, 0::2] - x[:, 1::2], out=empty(ROWS, BLOCK // 2), dtypes=DTYPES),
    block("tl.permute", permute, torch.t, out=empty(BLOCK, ROWS), dtypes=DTYPES),
    block(
        "tl.permute", permute_3d, lambda x: x.reshape(ROWS, -1, 8).permute(2, 0, 1), name="tl.permute.3d",
        out=empty(8, ROWS, BLOCK // 8), dtypes=("float32",),
    ),
    block("tl.trans", trans, torch.t, out=empty(BLOCK, ROWS), dtypes=MORE),
    block(
        "tl.trans", trans_3d, lambda x: x.reshape(ROWS, -1, 8).permute(1, 2, 0), name="tl.trans.3d",
        out=empty(BLOCK // 8, 8, ROWS), dtypes=("float32",),
    ),
    block("tl.ravel", ravel, torch.flatten, out=empty(SIZE), dtypes=DTYPES),
    block("tl.reshape", reshape, lambda x: x.reshape(BLOCK, ROWS), out=empty(BLOCK, ROWS), dtypes=MORE),
    block(
        "tl.reshape", reshape_reordered, torch.sum, name="tl.reshape.can_reorder", out=empty(),
        dtypes=("int32", "int64"),
    ),
    block("tl.view", view, torch.sum, out=empty(), dtypes=("int32", "int64")),
]  # fmt: skip
