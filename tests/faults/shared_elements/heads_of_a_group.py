"""The query heads of a group add to the gradient of their key head by load and store."""

import torch
import triton
import triton.language as tl

FINDS = {"race": ["*"]}
PASSES = ["cuda:90"]


@triton.jit
def dk(q_ptr, out_ptr, G, D: tl.constexpr):
    h = tl.program_id(0)
    o = tl.arange(0, D)
    q = tl.load(q_ptr + h * D + o)
    kv = h // G
    tl.store(out_ptr + kv * D + o, tl.load(out_ptr + kv * D + o) + q)  # here: race


def data():
    torch.manual_seed(1)
    return torch.randn(8, 16)


def run(dev):
    q = data().to(dev)
    out = torch.zeros(2, 16, device=dev)
    dk[(8,)](q, out, 4, D=16)
    return out


def ref():
    return data().reshape(2, 4, 16).sum(1)
