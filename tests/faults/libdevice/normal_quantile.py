"""The inverse of the normal distribution's integral."""

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice

FINDS = {"libdevice-gap": ["hip:gfx942", "hip:gfx1201"], "TP106": ["hip:gfx942"]}
PASSES = ["cuda:75", "cuda:90", "interpreter"]


@triton.jit
def apply(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, libdevice.normcdfinv(tl.load(x_ptr + offsets)))  # here: libdevice-gap, TP106


def data():
    return torch.linspace(0.25, 0.75, 64)


def run(dev):
    x = data().to(dev)
    out = torch.empty_like(x)
    apply[(1,)](x, out, BLOCK=64)
    return out


def ref():
    x = data().double()
    return torch.special.ndtri(x)
