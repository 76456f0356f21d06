"""The lanes past the end are counted among the zeros."""

import torch
import triton
import triton.language as tl

FINDS = {"wrong-value": ["*"]}


@triton.jit
def count(x_ptr, out_ptr, n, BLOCK: tl.constexpr, BINS: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=0)
    tl.store(out_ptr + tl.arange(0, BINS), tl.histogram(x, BINS))  # here: wrong-value


def data():
    torch.manual_seed(9)
    return torch.randint(0, 16, (100,), dtype=torch.int32)


def run(dev):
    out = torch.empty(16, dtype=torch.int32, device=dev)
    count[(1,)](data().to(dev), out, 100, BLOCK=128, BINS=16)
    return out


def ref():
    return torch.bincount(data(), minlength=16).int()
