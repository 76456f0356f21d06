"""A launch option of AMD alone."""

import torch
import triton
import triton.language as tl

FINDS = {"unknown-option": ["cuda:75", "cuda:90"]}
PASSES = ["hip:gfx942", "interpreter"]


@triton.jit
def double(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) * 2, mask=mask)


def data():
    return torch.arange(100, dtype=torch.int32)


def run(dev):
    x = data().to(dev)
    out = torch.empty_like(x)
    double[(1,)](x, out, 100, BLOCK=128, waves_per_eu=2)  # here: unknown-option
    return out


def ref():
    return data() * 2
