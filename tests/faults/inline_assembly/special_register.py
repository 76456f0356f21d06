"""A special register of NVIDIA's, read in PTX."""

import torch
import triton
import triton.language as tl

FINDS = {"inline-assembly": ["interpreter"], "TP104": ["hip:gfx942"]}
PASSES = ["cuda:90"]


@triton.jit
def where_it_ran(out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    unit = tl.inline_asm_elementwise("mov.u32 $0, %smid;", "=r,r", [offsets], tl.int32, False, 1)  # here: TP104
    tl.store(out_ptr + offsets, unit >= 0)


def run(dev):
    out = torch.empty(32, dtype=torch.bool, device=dev)
    where_it_ran[(1,)](out, BLOCK=32)
    return out


def ref():
    return torch.ones(32, dtype=torch.bool)
