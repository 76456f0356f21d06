"""Powers of 2 below the normal range, which are scaled up afterwards."""

import torch
import triton
import triton.language as tl

FINDS = {"flushed-exp2": ["cuda:75", "cuda:90", "hip:gfx942", "hip:gfx1100"]}
PASSES = ["cuda:90", "hip:gfx942", "interpreter"]
LACKS = {"flushed-exp2": ["interpreter"]}


@triton.jit
def scaled(x_ptr, out_ptr, scale, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.exp2(tl.load(x_ptr + i)) * scale)  # here: flushed-exp2


def data():
    return torch.linspace(-140.0, -127.0, 64)


def run(dev):
    x = data().to(dev)
    out = torch.empty_like(x)
    scaled[(1,)](x, out, 2.0**126, BLOCK=64)
    return out


def ref():
    return torch.exp2(data().double()).float() * 2.0**126
