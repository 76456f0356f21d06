"""Counts in 8 bits: no target has it."""

import torch
import triton
import triton.language as tl

FINDS = {"compile-error": ["cuda:90", "hip:gfx942"]}


@triton.jit
def count(index_ptr, total_ptr, BLOCK: tl.constexpr):
    index = tl.load(index_ptr + tl.arange(0, BLOCK))
    tl.atomic_add(total_ptr + index, tl.full((BLOCK,), 1, tl.int8))  # here: compile-error


def data():
    return (torch.arange(64) % 4).to(torch.int32)


def run(dev):
    total = torch.zeros(4, dtype=torch.int8, device=dev)
    count[(1,)](data().to(dev), total, BLOCK=64)
    return total


def ref():
    return torch.full((4,), 16, dtype=torch.int8)
