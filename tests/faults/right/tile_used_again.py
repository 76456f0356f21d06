"""Tiles are transposed through one of the program's own, with a barrier before it is loaded and before it is stored."""

import torch
import triton
import triton.language as tl

FINDS = {}
PASSES = ["cuda:90", "hip:gfx942", "interpreter"]
LACKS = {"missing-barrier": ["*"]}


@triton.jit
def transpose(x_ptr, tile_ptr, out_ptr, TILES: tl.constexpr, N: tl.constexpr):
    i, j = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    for tile in range(TILES):
        x = tl.load(x_ptr + tile * N * N + i * N + j)
        tl.debug_barrier()
        tl.store(tile_ptr + i * N + j, x)
        tl.debug_barrier()
        tl.store(out_ptr + tile * N * N + i * N + j, tl.load(tile_ptr + j * N + i))


def data():
    return torch.arange(768.0).reshape(3, 16, 16)


def run(dev):
    x = data().to(dev)
    tile, out = torch.empty(16, 16, device=dev), torch.empty_like(x)
    transpose[(1,)](x, tile, out, TILES=3, N=16)
    return out


def ref():
    return data().transpose(1, 2).contiguous()
