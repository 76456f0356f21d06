"""A wrapper that makes everything on its input's device, as it should."""

import torch
import triton
import triton.language as tl

FINDS = {}
PASSES = ["cuda:90", "hip:gfx942", "npu:Ascend910B3", "interpreter"]


@triton.jit
def shifted(x_ptr, by_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) + tl.load(by_ptr), mask=mask)


def data():
    return torch.linspace(-1, 1, 50)


def run(dev):
    x = data().to(dev)
    by, out = torch.tensor([2.0], device=x.device), torch.empty(50, device=x.device)
    shifted[(2,)](x, by, out, 50, BLOCK=32)
    return out + torch.zeros(50, dtype=x.dtype, device=out.device)


def ref():
    return data() + 2
