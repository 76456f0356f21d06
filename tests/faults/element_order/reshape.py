"""A reshape that may reorder, of values whose place matters."""

import torch
import triton
import triton.language as tl

FINDS = {"reorders": ["cuda:90", "hip:gfx942"]}
PASSES = ["cuda:90", "hip:gfx942", "interpreter"]


@triton.jit
def rows(x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, M * N))
    matrix = tl.reshape(x, (M, N), can_reorder=True)  # here: reorders
    tl.store(out_ptr + tl.arange(0, M), tl.sum(matrix, 1))


def data():
    return torch.arange(64, dtype=torch.float32)


def run(dev):
    out = torch.empty(8, device=dev)
    rows[(1,)](data().to(dev), out, M=8, N=8)
    return out


def ref():
    return data().reshape(8, 8).sum(1)
