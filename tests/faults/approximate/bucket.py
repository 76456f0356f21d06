"""The bucket that a value lies in, by the floor of a quotient that is whole."""

import torch
import triton
import triton.language as tl

FINDS = {"approximate-quotient": ["cuda:75", "cuda:90"]}
PASSES = ["interpreter", "cuda:90", "hip:gfx942"]
LACKS = {"approximate-quotient": ["interpreter", "hip:gfx942"]}


@triton.jit
def bucket(x_ptr, out_ptr, width, n, B: tl.constexpr):
    o = tl.program_id(0) * B + tl.arange(0, B)
    x = tl.load(x_ptr + o, mask=o < n, other=0.0)
    tl.store(out_ptr + o, tl.floor(x / width).to(tl.int32), mask=o < n)  # here: approximate-quotient


def data():
    return torch.arange(100.0) * 49


def run(dev):
    x = data().to(dev)
    out = torch.empty(100, dtype=torch.int32, device=dev)
    bucket[(2,)](x, out, 49.0, 100, B=64)
    return out


def ref():
    return torch.arange(100, dtype=torch.int32)
