"""Values past the largest e4m3: saturated on some targets, NaN on others."""

import torch
import triton
import triton.language as tl

FINDS = {"fp8-saturation": ["*"]}
PASSES = ["cuda:90", "hip:gfx942", "interpreter"]


@triton.jit
def quantise(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets).to(tl.float8e4nv))  # here: fp8-saturation


def data():
    return torch.tensor([1.0, 448.0, 460.0, 500.0, 1000.0, -5000.0, 3.0e38, float("inf")])


def run(dev):
    out = torch.empty(8, dtype=torch.float8_e4m3fn, device=dev)
    quantise[(1,)](data().to(dev), out, BLOCK=8)
    return out.float()


def ref():
    return data().clamp(-448, 448).to(torch.float8_e4m3fn).float()
