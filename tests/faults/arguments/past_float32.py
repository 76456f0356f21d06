"""A limit that float32 cannot hold is infinite."""

import torch
import triton
import triton.language as tl

FINDS = {"wrong-value": ["*"]}
PASSES = ["cuda:90"]


@triton.jit
def clip(x_ptr, out_ptr, limit, B: tl.constexpr):
    o = tl.arange(0, B)
    x = tl.load(x_ptr + o)
    tl.store(out_ptr + o, tl.minimum(x, limit))  # here: wrong-value


def data():
    return torch.tensor([1e30, 1e39, 1e45, 1e50] * 4, dtype=torch.float64)


def run(dev):
    x = data().to(dev)
    out = torch.empty_like(x)
    clip[(1,)](x, out, 1e40, B=16)
    return out


def ref():
    return data().clamp(max=1e40)
