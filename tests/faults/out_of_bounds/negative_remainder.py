"""A remainder of a negative number is negative: the roll begins before the tensor."""

import torch
import triton
import triton.language as tl

FINDS = {"out-of-bounds": ["*"], "mixed-signs": ["*"]}


@triton.jit
def roll(x_ptr, out_ptr, shift, n, B: tl.constexpr):
    o = tl.program_id(0) * B + tl.arange(0, B)
    m = o < n
    tl.store(out_ptr + o, tl.load(x_ptr + (o - shift) % n, mask=m), mask=m)  # here: out-of-bounds, mixed-signs


def data():
    return torch.arange(100.0)


def run(dev):
    x = data().to(dev)
    out = torch.empty_like(x)
    roll[(4,)](x, out, 3, 100, B=32)
    return out


def ref():
    return torch.roll(data(), 3)
