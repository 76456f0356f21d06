"""A module that no supported release of Triton has."""

import torch
import triton
import triton.language as tl
from triton.tools.experimental_descriptor import create_2d_tma_descriptor  # here: not-imported

FINDS = {"not-imported": ["interpreter", "cuda:90"]}


@triton.jit
def copy(x_ptr, out_ptr, BLOCK: tl.constexpr):
    rows, columns = tl.arange(0, BLOCK), tl.arange(0, BLOCK)
    x = tl._experimental_descriptor_load(x_ptr, [0, 0], [BLOCK, BLOCK], tl.float32)
    tl.store(out_ptr + rows[:, None] * BLOCK + columns[None, :], x)


def data():
    return torch.arange(256.0).reshape(16, 16)


def run(dev):
    x = data().to(dev)
    out = torch.empty_like(x)
    copy[(1,)](create_2d_tma_descriptor(x.data_ptr(), 16, 16, 16, 16, 4), out, BLOCK=16)
    return out


def ref():
    return data()
