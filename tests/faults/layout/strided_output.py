"""An output that is a slice of wider rows, written as if it were whole."""

import torch
import triton
import triton.language as tl

FINDS = {"wrong-value": ["*"]}


@triton.jit
def fill(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=offsets < n), mask=offsets < n)


def data():
    torch.manual_seed(1)
    return torch.randn(4, 16)


def run(dev):
    x = data().to(dev)
    out = torch.zeros(4, 24, device=dev)[:, :16]
    fill[(1,)](x, out, 64, BLOCK=64)
    return out


def ref():
    return data()
