"""Vectors so short that the square of their length is subnormal, made to unit length with nothing added to it."""

import torch
import triton
import triton.language as tl

FINDS = {"flushed-root": ["cuda:90", "hip:gfx942"]}
PASSES = ["cuda:90", "hip:gfx942", "interpreter"]
LACKS = {"flushed-root": ["interpreter"]}


@triton.jit
def unit(x_ptr, out_ptr, N: tl.constexpr):
    at = tl.program_id(0) * N + tl.arange(0, N)
    x = tl.load(x_ptr + at)
    tl.store(out_ptr + at, x * tl.rsqrt(tl.sum(x * x)))  # here: flushed-root


def data():
    return torch.tensor([[1e-20], [1.0]]) * torch.linspace(1, 2, 16)


def run(dev):
    x = data().to(dev)
    out = torch.empty_like(x)
    unit[(2,)](x, out, N=16)
    return out


def ref():
    x = data().double()
    return (x / x.norm(dim=1, keepdim=True)).float()
