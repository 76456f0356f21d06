"""The variance of two equal numbers as E[x²] - mean²: 0 where both squares are rounded, else below 0."""

import torch
import triton
import triton.language as tl

FINDS = {"fused-product": ["cuda:75", "cuda:90", "hip:gfx942", "hip:gfx1201"]}
PASSES = ["cuda:90", "hip:gfx942", "interpreter"]
LACKS = {"fused-product": ["interpreter"]}


@triton.jit
def deviation(x_ptr, out_ptr, N: tl.constexpr):
    row, columns = tl.program_id(0), tl.arange(0, N)
    x = tl.load(x_ptr + row * N + columns)
    mean = tl.sum(x, 0) / N
    squares = tl.sum(x * x, 0) / N
    tl.store(out_ptr + row, tl.sqrt(squares - mean * mean))  # here: fused-product


def data():
    return torch.tensor([0.1, 0.3, 0.7, 1.1])[:, None].expand(4, 2).contiguous()


def run(dev):
    x = data().to(dev)
    out = torch.empty(4, device=dev)
    deviation[(4,)](x, out, N=2)
    return out


def ref():
    return torch.zeros(4)
