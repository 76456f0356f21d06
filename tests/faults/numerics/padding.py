"""A variance over a padded row: the padding has a distance to the mean."""

import torch
import triton
import triton.language as tl

FINDS = {"wrong-value": ["*"]}


@triton.jit
def variance(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    columns = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + tl.program_id(0) * n + columns, mask=columns < n, other=0.0)
    centred = x - tl.sum(x, 0) / n
    tl.store(out_ptr + tl.program_id(0), tl.sum(centred * centred, 0) / n)  # here: wrong-value


def data():
    torch.manual_seed(16)
    return torch.randn(4, 50) + 2


def run(dev):
    out = torch.empty(4, device=dev)
    variance[(4,)](data().to(dev), out, 50, BLOCK=64)
    return out


def ref():
    return data().double().var(1, unbiased=False)
