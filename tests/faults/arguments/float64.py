"""A factor for doubles is passed as a number, and so in float32."""

import torch
import triton
import triton.language as tl

FINDS = {"wrong-value": ["*"]}
PASSES = ["cuda:90"]


@triton.jit
def scale(x_ptr, out_ptr, alpha, n, B: tl.constexpr):
    o = tl.program_id(0) * B + tl.arange(0, B)
    x = tl.load(x_ptr + o, mask=o < n)
    tl.store(out_ptr + o, x * alpha, mask=o < n)  # here: wrong-value


def data():
    torch.manual_seed(0)
    return torch.randn(100, dtype=torch.float64)


def run(dev):
    x = data().to(dev)
    out = torch.empty_like(x)
    scale[(2,)](x, out, 0.1, 100, B=64)
    return out


def ref():
    return data() * 0.1
