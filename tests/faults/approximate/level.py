"""Levels of a quantiser by cutting quotients off: the largest value is to have the last level."""

import torch
import triton
import triton.language as tl

FINDS = {"approximate-quotient": ["cuda:75", "cuda:90"]}
PASSES = ["interpreter", "cuda:90", "hip:gfx942"]
LACKS = {"approximate-quotient": ["interpreter", "hip:gfx942"]}


@triton.jit
def levels(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    share = x / tl.max(x, 0)  # here: approximate-quotient
    tl.store(out_ptr + i, (share * 15).to(tl.int32))


def data():
    torch.manual_seed(50)
    return torch.randint(1, 98, (4, 64)).float()


def run(dev):
    x = data().to(dev)
    out = torch.empty(4, 64, dtype=torch.int32, device=dev)
    levels[(4,)](x, out, BLOCK=64)
    return out


def ref():
    x = data()
    return (x / x.amax(1, keepdim=True) * 15).int()
