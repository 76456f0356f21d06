"""Programs that take their place from a counter, and never ask which program they are."""

import torch
import triton
import triton.language as tl

FINDS = {}
PASSES = ["cuda:90", "hip:gfx942", "interpreter"]
LACKS = {"TP209": ["*"]}


@triton.jit
def double(x_ptr, next_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.atomic_add(next_ptr, 1) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) * 2, mask=mask)


def data():
    return torch.linspace(-1, 1, 100)


def run(dev):
    x, counter = data().to(dev), torch.zeros(1, dtype=torch.int32, device=dev)
    out = torch.empty_like(x)
    double[(4,)](x, counter, out, 100, BLOCK=32)
    return out


def ref():
    return data() * 2
