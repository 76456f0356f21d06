"""Counts in bfloat16: an instruction on some targets, a loop of compare-and-swap on others."""

import torch
import triton
import triton.language as tl

FINDS = {"atomic-emulated": ["cuda:75", "cuda:86", "hip:gfx90a", "hip:gfx1100"]}
PASSES = ["cuda:75", "cuda:86", "cuda:90", "hip:gfx90a", "hip:gfx1100", "interpreter"]
LACKS = {"atomic-emulated": ["cuda:90"]}


@triton.jit
def count(index_ptr, total_ptr, step, BLOCK: tl.constexpr):
    index = tl.load(index_ptr + tl.arange(0, BLOCK))
    tl.atomic_add(total_ptr + index, tl.full((BLOCK,), step, tl.bfloat16))  # here: atomic-emulated


def data():
    return (torch.arange(64) % 8).to(torch.int32)


def run(dev):
    total = torch.zeros(8, dtype=torch.bfloat16, device=dev)
    count[(1,)](data().to(dev), total, 0.5, BLOCK=64)
    return total.float()


def ref():
    return torch.full((8,), 4.0)
