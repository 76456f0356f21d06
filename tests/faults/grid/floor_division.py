"""The grid is rounded down: the last elements are never written."""

import torch
import triton
import triton.language as tl

FINDS = {"undefined-value": ["*"], "wrong-value": ["*"]}


@triton.jit
def double(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) * 2, mask=mask)


def data():
    torch.manual_seed(1)
    return torch.randn(1000)


def run(dev):
    x = data().to(dev)
    out = torch.empty_like(x)
    double[(1000 // 128,)](x, out, 1000, BLOCK=128)
    return out


def ref():
    return data() * 2
