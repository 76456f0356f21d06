"""Sums of integers and maxima of floats by atomics: the order of programs does not show."""

import torch
import triton
import triton.language as tl

FINDS = {}
PASSES = ["interpreter", "cuda:75", "cuda:90", "hip:gfx90a", "hip:gfx942"]


@triton.jit
def totals(x_ptr, sums_ptr, top_ptr, n_elements, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n_elements, other=0)
    tl.atomic_add(sums_ptr + x % 7, x, mask=offsets < n_elements)
    tl.atomic_max(top_ptr, tl.max(x.to(tl.float32), 0))


def data():
    return torch.arange(500, dtype=torch.int32) * 37 % 1000


def run(dev):
    x = data().to(dev)
    sums, top = torch.zeros(7, dtype=torch.int32, device=dev), torch.zeros(1, device=dev)
    totals[(8,)](x, sums, top, 500, BLOCK=64)
    return sums, top


def ref():
    x = data()
    return torch.zeros(7, dtype=torch.int32).scatter_add_(0, (x % 7).long(), x), x.amax().float().reshape(1)
