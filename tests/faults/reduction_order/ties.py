"""The index of a maximum that comes twice, without a rule for ties."""

import torch
import triton
import triton.language as tl

FINDS = {"reduce-order": ["*"]}


@triton.jit
def where(x_ptr, out_ptr, BLOCK: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, BLOCK))
    tl.store(out_ptr, tl.argmax(x, 0, tie_break_left=False))


def data():
    return torch.tensor([1.0, 5.0, 2.0, 5.0])


def run(dev):
    out = torch.empty(1, dtype=torch.int32, device=dev)
    where[(1,)](data().to(dev), out, BLOCK=4)
    return out


def ref():
    return torch.tensor([1], dtype=torch.int32)
