"""Every row is written to one place: the output has stride 0."""

import torch
import triton
import triton.language as tl

FINDS = {"race": ["*"]}
PASSES = ["cuda:90"]


@triton.jit
def scale(x_ptr, out_ptr, sx, so, n, B: tl.constexpr):
    r = tl.program_id(0)
    o = tl.arange(0, B)
    x = tl.load(x_ptr + r * sx + o, mask=o < n)
    tl.store(out_ptr + r * so + o, 2 * x, mask=o < n)  # here: race


def data():
    return torch.arange(40.0).reshape(4, 10)


def run(dev):
    x = data().to(dev)
    out = torch.empty(1, 10, device=dev).expand(4, 10)
    scale[(4,)](x, out, x.stride(0), out.stride(0), 10, B=16)
    return out.clone()


def ref():
    return data() * 2
