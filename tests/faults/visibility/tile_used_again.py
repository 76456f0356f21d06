"""Tiles are transposed through one of the program's own: it is stored anew while other lanes may still load it."""

import torch
import triton
import triton.language as tl

FINDS = {"missing-barrier": ["*"]}


@triton.jit
def transpose(x_ptr, tile_ptr, out_ptr, TILES: tl.constexpr, N: tl.constexpr):
    i, j = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    for tile in range(TILES):
        x = tl.load(x_ptr + tile * N * N + i * N + j)
        tl.store(tile_ptr + i * N + j, x)  # here: missing-barrier
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
