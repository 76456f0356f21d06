"""A difference with the element before, without a mask for the first one."""

import torch
import triton
import triton.language as tl

FINDS = {"out-of-bounds": ["*"]}


@triton.jit
def differences(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    before = tl.load(x_ptr + offsets - 1, mask=mask, other=0.0)  # here: out-of-bounds
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) - before, mask=mask)


def data():
    torch.manual_seed(3)
    return torch.randn(300)


def run(dev):
    x = data().to(dev)
    out = torch.empty_like(x)
    differences[(3,)](x, out, 300, BLOCK=128)
    return out


def ref():
    x = data()
    return x - torch.cat([torch.zeros(1), x[:-1]])
