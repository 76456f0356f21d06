"""Rows past the end wrap round, and are added to the sum a second time."""

import torch
import triton
import triton.language as tl

FINDS = {"wrong-value": ["*"]}


@triton.jit
def colsum(x_ptr, out_ptr, M, N, BM: tl.constexpr, BN: tl.constexpr):
    r = (tl.program_id(0) * BM + tl.arange(0, BM)) % M
    c = tl.arange(0, BN)
    x = tl.load(x_ptr + r[:, None] * N + c[None, :])
    tl.atomic_add(out_ptr + c, tl.sum(x, 0))  # here: wrong-value


def data():
    return torch.ones(50, 16)


def run(dev):
    x = data().to(dev)
    out = torch.zeros(16, device=dev)
    colsum[(2,)](x, out, 50, 16, BM=32, BN=16)
    return out


def ref():
    return data().sum(0)
