"""An unsigned index less one, which is never negative."""

import torch
import triton
import triton.language as tl

FINDS = {"out-of-bounds": ["*"]}


@triton.jit
def shifted(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK).to(tl.uint32)
    before = offsets - 1
    x = tl.load(x_ptr + before, mask=before >= 0, other=0.0)
    tl.store(out_ptr + offsets, x)


def data():
    return torch.arange(32.0)


def run(dev):
    x = data().to(dev)
    out = torch.empty_like(x)
    shifted[(1,)](x, out, BLOCK=32)
    return out


def ref():
    return torch.cat([torch.zeros(1), data()[:-1]])
