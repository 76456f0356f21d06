"""A variance as the mean of squares less the square of the mean."""

import torch
import triton
import triton.language as tl

FINDS = {"wrong-value": ["*"]}


@triton.jit
def variance(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    columns = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + columns, mask=columns < n, other=0.0)
    mean = tl.sum(x, 0) / n
    tl.store(out_ptr, tl.sum(x * x, 0) / n - mean * mean)  # here: wrong-value


def data():
    torch.manual_seed(15)
    return torch.randn(1000) + 3000


def run(dev):
    out = torch.empty(1, device=dev)
    variance[(1,)](data().to(dev), out, 1000, BLOCK=1024)
    return out


def ref():
    return data().double().var(unbiased=False).reshape(1)
