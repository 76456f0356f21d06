"""Blocks that a kernel makes for itself."""

from functools import partial

import torch
import triton
import triton.language as tl

from portability.kernels.api._probe import BLOCK, NUMBERS, called, empty, probe

made = partial(probe, group="creation", relative=0.0, BLOCK=BLOCK)
spelled = partial(called, group="creation", relative=0.0)
MADE = (*NUMBERS, "bool", "float8_e4m3fn", "float8_e5m2")


@triton.jit
def arange_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    """out = 3, 4, 5, …"""
    tl.store(out_ptr + tl.arange(0, BLOCK), tl.arange(3, 3 + BLOCK).to(x_ptr.dtype.element_ty))


@triton.jit
def full_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    """out = 1, in the dtype of x."""
    tl.store(out_ptr + tl.arange(0, BLOCK), tl.full((BLOCK,), 1, x_ptr.dtype.element_ty))


@triton.jit
def full_scalar_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    """out = x[3], everywhere."""
    tl.store(out_ptr + tl.arange(0, BLOCK), tl.full((BLOCK,), tl.load(x_ptr + 3), x_ptr.dtype.element_ty))


@triton.jit
def zeros_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    """out = 0, in the dtype of x."""
    tl.store(out_ptr + tl.arange(0, BLOCK), tl.zeros((BLOCK,), x_ptr.dtype.element_ty))


@triton.jit
def to_tensor_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    """out = 7, a constant made a tensor and added to a block of zeros."""
    seven = tl.to_tensor(7)
    tl.store(out_ptr + tl.arange(0, BLOCK), tl.zeros((BLOCK,), x_ptr.dtype.element_ty) + seven)


@triton.jit
def zeros_like(x):
    return tl.zeros_like(x)


@triton.jit
def cat(x, y):
    return tl.cat(x, y)


@triton.jit
def cat_reordered(x, y):
    return tl.sum(tl.cat(x, y, can_reorder=True), axis=0)


@triton.jit
def cat_dim(x, y):
    return tl.cat(x, y, dim=1)


CASES = [
    made("tl.arange", arange_kernel, lambda x: torch.arange(3, 3 + BLOCK).to(x.dtype), dtypes=("int32", "int64")),
    made("tl.full", full_kernel, torch.ones_like, dtypes=MADE),
    made(
        "tl.full", full_scalar_kernel, lambda x: x[3].expand(BLOCK), name="tl.full.scalar",
        dtypes=("float32", "float16", "int32"),
    ),
    made("tl.zeros", zeros_kernel, torch.zeros_like, dtypes=MADE),
    made("tl.to_tensor", to_tensor_kernel, lambda x: torch.full_like(x, 7), dtypes=("int32",)),
    spelled("tl.zeros_like", zeros_like, torch.zeros_like, dtypes=("float32", "float16", "int32")),
    spelled(
        "tl.cat", cat, lambda x, y: torch.cat([x, y]), arity=2, out=empty(2 * BLOCK),
        dtypes=("float32", "float16", "int8"),
    ),
    spelled(
        "tl.cat", cat_dim, lambda x, y: torch.cat([x, y], 1), name="tl.cat.dim", arity=2, rows=4,
        out=empty(4, 2 * BLOCK), dtypes=("float32",),
    ),
    spelled(
        "tl.cat", cat_reordered, lambda x, y: x.sum() + y.sum(), name="tl.cat.can_reorder", arity=2, out=empty(),
        dtypes=("int32", "int64"),
    ),
]  # fmt: skip
