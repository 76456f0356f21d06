"""One value that every lane reads after one lane stored it."""

import torch
import triton
import triton.language as tl

FINDS = {"missing-barrier": ["*"]}
PASSES = ["cuda:75", "interpreter"]


@triton.jit
def add_first(x_ptr, first_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    tl.store(first_ptr + offsets, x, mask=offsets == 0)
    tl.store(x_ptr + offsets, x + tl.load(first_ptr + offsets * 0))  # here: missing-barrier


def data():
    return torch.arange(3, 67, dtype=torch.float32)


def run(dev):
    x = data().to(dev).clone()
    add_first[(1,)](x, torch.empty(1, device=dev), BLOCK=64)
    return x


def ref():
    return data() + 3
