"""Block pointers, which Triton 3.9 has no more."""

import torch
import triton
import triton.language as tl

FINDS = {"TP502": ["cuda:90", "hip:gfx942"]}


@triton.jit
def copy(x_ptr, out_ptr, M, N, BLOCK: tl.constexpr):
    tile = tl.make_block_ptr(x_ptr, (M, N), (N, 1), (0, 0), (BLOCK, BLOCK), (1, 0))
    x = tl.load(tile, boundary_check=(0, 1))
    at = tl.arange(0, BLOCK)[:, None] * N + tl.arange(0, BLOCK)[None, :]
    tl.store(out_ptr + at, x)


def data():
    torch.manual_seed(11)
    return torch.randn(16, 16)


def run(dev):
    x = data().to(dev)
    out = torch.empty_like(x)
    copy[(1,)](x, out, 16, 16, BLOCK=16)
    return out


def ref():
    return data()
