"""A transposition in place, tile by tile: the tile that is written another program reads."""

import torch
import triton
import triton.language as tl

FINDS = {"race": ["*"]}


@triton.jit
def tr(x_ptr, N, B: tl.constexpr):
    r = tl.program_id(0) * B + tl.arange(0, B)
    c = tl.program_id(1) * B + tl.arange(0, B)
    x = tl.load(x_ptr + r[:, None] * N + c[None, :])  # here: race
    tl.store(x_ptr + c[:, None] * N + r[None, :], tl.trans(x))


def data():
    return torch.arange(1024.0).reshape(32, 32)


def run(dev):
    x = data().to(dev).clone()
    tr[(2, 2)](x, 32, B=16)
    return x


def ref():
    return data().T.contiguous()
