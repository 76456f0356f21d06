"""Descriptors whose blocks end outside on both sides: zeros are read there, and nothing is stored."""

import torch
import triton
import triton.language as tl

FINDS = {}
PASSES = ["interpreter", "cuda:90", "hip:gfx90a", "hip:gfx942"]


@triton.jit
def increment(x_ptr, out_ptr, M, N, BLOCK: tl.constexpr):
    x = tl.make_tensor_descriptor(x_ptr, [M, N], [N, 1], [BLOCK, BLOCK])
    out = tl.make_tensor_descriptor(out_ptr, [M, N], [N, 1], [BLOCK, BLOCK])
    row, column = tl.program_id(0) * BLOCK, tl.program_id(1) * BLOCK
    out.store([row, column], x.load([row, column]) + 1.0)


def data():
    return torch.randn(37, 52)


def run(dev):
    triton.set_allocator(lambda size, _alignment, _stream: torch.empty(size, dtype=torch.int8, device=dev))
    x = data().to(dev)
    out = torch.empty_like(x)
    increment[(3, 4)](x, out, 37, 52, BLOCK=16)
    return out


def ref():
    return data() + 1
