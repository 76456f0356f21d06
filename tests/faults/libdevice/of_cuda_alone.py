"""CUDA's library by its own name: an import that other environments lack, and a function that other compilers drop."""

import torch
import triton
import triton.language as tl
from triton.language.extra.cuda import libdevice  # here: not-imported, TP105

FINDS = {
    "libdevice-gap": ["hip:gfx942", "hip:gfx1201"], "TP105": ["hip:gfx942", "npu:Ascend910B3"],
}  # fmt: skip
PASSES = ["cuda:75", "cuda:90"]


@triton.jit
def exponentials(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, libdevice.fast_expf(tl.load(x_ptr + offsets)))  # here: libdevice-gap


def data():
    return torch.linspace(-1.0, 1.0, 64)


def run(dev):
    x = data().to(dev)
    out = torch.empty_like(x)
    exponentials[(1,)](x, out, BLOCK=64)
    return out


def ref():
    return data().double().exp()
