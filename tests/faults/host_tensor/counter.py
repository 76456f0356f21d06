"""A counter that a helper of the wrapper makes without a device."""

import torch
import triton
import triton.language as tl

FINDS = {"host-tensor": ["cuda:90", "hip:gfx942"]}
PASSES = ["interpreter"]


@triton.jit
def count(x_ptr, count_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    tl.atomic_add(count_ptr, tl.sum((x > 0).to(tl.int32), 0))


def data():
    return torch.linspace(-1, 1, 50)


def counter():
    return torch.zeros(1, dtype=torch.int32)


def run(dev):
    x, found = data().to(dev), counter()
    count[(4,)](x, found, 50, BLOCK=16)  # here: host-tensor
    return found


def ref():
    return (data() > 0).sum().int().reshape(1)
