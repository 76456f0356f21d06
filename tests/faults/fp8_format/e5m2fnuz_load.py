"""A load of AMD's e5m2."""

import torch
import triton
import triton.language as tl

FINDS = {"float8-type": ["cuda:75", "cuda:100"]}
PASSES = ["hip:gfx942", "interpreter"]


@triton.jit
def dequantise(x_ptr, out_ptr, BLOCK: tl.constexpr):  # here: float8-type
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets).to(tl.float32))


def data():
    return torch.linspace(-8, 8, 64).to(torch.float8_e5m2fnuz)


def run(dev):
    out = torch.empty(64, device=dev)
    dequantise[(1,)](data().to(dev), out, BLOCK=64)
    return out


def ref():
    return data().float()
