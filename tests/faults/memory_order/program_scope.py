"""A counter of all programs whose atomics hold within one program alone."""

import torch
import triton
import triton.language as tl

FINDS = {"race": ["*"]}


@triton.jit
def count(x_ptr, total_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    positive = tl.load(x_ptr + offsets, mask=offsets < n, other=0.0) > 0
    tl.atomic_add(total_ptr, tl.sum(positive.to(tl.int32)), sem="relaxed", scope="cta")  # here: race


def data():
    return torch.linspace(-1, 2, 1000)


def run(dev):
    total = torch.zeros(1, dtype=torch.int32, device=dev)
    count[(8,)](data().to(dev), total, 1000, BLOCK=128)
    return total


def ref():
    return (data() > 0).sum(dtype=torch.int32).reshape(1)
