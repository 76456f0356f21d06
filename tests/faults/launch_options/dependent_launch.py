"""A launch that may begin before the one before it has ended, an option that NVIDIA's compiler alone has."""

import torch
import triton
import triton.language as tl

FINDS = {"unknown-option": ["hip:gfx942", "hip:gfx1100"]}
PASSES = ["cuda:90", "interpreter"]


@triton.jit
def double(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, 2 * tl.load(x_ptr + offsets))


def data():
    return torch.randn(256)


def run(dev):
    x = data().to(dev)
    out = torch.empty_like(x)
    double[(1,)](x, out, BLOCK=256, launch_pdl=True)  # here: unknown-option
    return out


def ref():
    return 2 * data()
