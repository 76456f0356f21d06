"""Indices packed below their values: of equals the last one comes first."""

import torch
import triton
import triton.language as tl

FINDS = {"wrong-value": ["*"]}


@triton.jit
def top(x_ptr, out_ptr, B: tl.constexpr, K: tl.constexpr):
    o = tl.arange(0, B)
    x = tl.load(x_ptr + o)
    key = (x.to(tl.int32, bitcast=True).to(tl.int64) << 32) | o.to(tl.int64)
    best = tl.topk(key, K)
    tl.store(out_ptr + tl.arange(0, K), (best & 0xFFFFFFFF).to(tl.int32))  # here: wrong-value


def data():
    return torch.tensor([1.0, 3, 3, 2, 3, 0, 1, 2])


def run(dev):
    x = data().to(dev)
    out = torch.empty(4, dtype=torch.int32, device=dev)
    top[(1,)](x, out, B=8, K=4)
    return out


def ref():
    return torch.sort(data(), descending=True, stable=True).indices[:4].int()
