"""A cast to e4m3 before Ada."""

import torch
import triton
import triton.language as tl

FINDS = {"float8-type": ["cuda:75", "cuda:86"]}
PASSES = ["cuda:89", "hip:gfx942", "interpreter"]


@triton.jit
def quantise(x_ptr, out_ptr, scale, BLOCK: tl.constexpr):  # here: float8-type
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, (tl.load(x_ptr + offsets) * scale).to(tl.float8e4nv))


def data():
    return torch.linspace(-30, 30, 64)


def run(dev):
    out = torch.empty(64, dtype=torch.float8_e4m3fn, device=dev)
    quantise[(1,)](data().to(dev), out, 2.0, BLOCK=64)
    return out.float()


def ref():
    return (data() * 2).to(torch.float8_e4m3fn).float()
