"""A bias that is one row of stride 0: it is only read."""

import torch
import triton
import triton.language as tl

FINDS = {}
PASSES = ["interpreter"]


@triton.jit
def add(x_ptr, b_ptr, out_ptr, sx, sbr, sbc, N, B: tl.constexpr):
    r = tl.program_id(0)
    o = tl.arange(0, B)
    m = o < N
    b = tl.load(b_ptr + r * sbr + o * sbc, mask=m)
    tl.store(out_ptr + r * sx + o, tl.load(x_ptr + r * sx + o, mask=m) + b, mask=m)


def data():
    torch.manual_seed(1)
    return torch.randn(5, 10), torch.randn(10)


def run(dev):
    x, b = (t.to(dev) for t in data())
    b = b.expand(5, 10)
    out = torch.empty_like(x)
    add[(5,)](x, b, out, x.stride(0), b.stride(0), b.stride(1), 10, B=16)
    return out


def ref():
    x, b = data()
    return x + b
