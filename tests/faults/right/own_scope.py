"""Atomics of one program's own elements may have its own scope; those that all programs update have the device's."""

import torch
import triton
import triton.language as tl

FINDS = {}
PASSES = ["cuda:90", "hip:gfx942", "interpreter"]


@triton.jit
def count(x_ptr, own_ptr, total_ptr, n, BINS: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask, other=0)
    tl.atomic_add(own_ptr + tl.program_id(0) * BINS + x, 1, mask=mask, sem="relaxed", scope="cta")
    tl.atomic_add(total_ptr, tl.sum(x), sem="relaxed", scope="gpu")


def data():
    return torch.arange(1000, dtype=torch.int32) * 7 % 8


def run(dev):
    own = torch.zeros(8, 8, dtype=torch.int32, device=dev)
    total = torch.zeros(1, dtype=torch.int32, device=dev)
    count[(8,)](data().to(dev), own, total, 1000, BINS=8, BLOCK=128)
    return own, total


def ref():
    x = data()
    own = torch.stack([torch.bincount(part, minlength=8) for part in x.split(128)])
    return own.int(), x.sum(dtype=torch.int32).reshape(1)
