"""A load of e4m3 before Ada: the type is in the tensor, and not in the source."""

import torch
import triton
import triton.language as tl

FINDS = {"float8-type": ["cuda:80"]}
PASSES = ["cuda:90", "hip:gfx90a", "interpreter"]


@triton.jit
def dequantise(x_ptr, out_ptr, scale, BLOCK: tl.constexpr):  # here: float8-type
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets).to(tl.float32) * scale)


def data():
    return torch.linspace(-30, 30, 64).to(torch.float8_e4m3fn)


def run(dev):
    out = torch.empty(64, device=dev)
    dequantise[(1,)](data().to(dev), out, 0.5, BLOCK=64)
    return out


def ref():
    return data().float() * 0.5
