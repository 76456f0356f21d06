"""A binary search whose lower bound may stay where it is."""

import torch
import triton
import triton.language as tl

FINDS = {"timeout": ["*"]}
PASSES = ["cuda:90"]


@triton.jit
def find(x_ptr, out_ptr, key, n):
    lo = 0
    hi = n
    while lo < hi:  # here: timeout
        mid = (lo + hi) // 2
        if tl.load(x_ptr + mid) <= key:
            lo = mid
        else:
            hi = mid
    tl.store(out_ptr, lo)


def data():
    return torch.arange(20.0)


def run(dev):
    x = data().to(dev)
    out = torch.empty(1, dtype=torch.int32, device=dev)
    find[(1,)](x, out, 7.5, 20)
    return out


def ref():
    return torch.tensor([7], dtype=torch.int32)
