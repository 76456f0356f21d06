"""Values past the largest e5m2, which has infinities."""

import torch
import triton
import triton.language as tl

FINDS = {"fp8-saturation": ["*"]}
PASSES = ["cuda:80", "hip:gfx942"]


@triton.jit
def quantise(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets).to(tl.float8e5))  # here: fp8-saturation


def data():
    return torch.tensor([1.0, -2.0, 57344.0, 70000.0, -1e6, 3.0, 0.5, 0.25])


def run(dev):
    out = torch.empty(8, dtype=torch.float8_e5m2, device=dev)
    quantise[(1,)](data().to(dev), out, BLOCK=8)
    return out.float()


def ref():
    return data().clamp(-57344, 57344).to(torch.float8_e5m2).float()
