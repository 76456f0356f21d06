"""No elements, so no programs: a grid that Ascend refuses."""

import torch
import triton
import triton.language as tl

FINDS = {"grid-empty": ["npu:Ascend910B3"]}
PASSES = ["cuda:90", "interpreter"]


@triton.jit
def negate(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, -tl.load(x_ptr + offsets, mask=mask), mask=mask)


def run(dev):
    x = torch.empty(0, 7, device=dev)
    out = torch.empty_like(x)
    negate[(triton.cdiv(x.numel(), 128),)](x, out, x.numel(), BLOCK=128)  # here: grid-empty
    return out


def ref():
    return torch.empty(0, 7)
