"""A difference of products that is to be 0, by a launch that forbids to fuse them."""

import torch
import triton
import triton.language as tl

FINDS = {}
PASSES = ["cuda:90", "hip:gfx942", "interpreter"]
LACKS = {"fused-product": ["cuda:90", "hip:gfx942"]}


@triton.jit
def difference(x_ptr, y_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x, y = tl.load(x_ptr + i), tl.load(y_ptr + i)
    tl.store(out_ptr + i, (x * y - y * x) * 1e9)


def data():
    return torch.randn(64), torch.randn(64)


def run(dev):
    x, y = (t.to(dev) for t in data())
    out = torch.empty_like(x)
    difference[(1,)](x, y, out, BLOCK=64, enable_fp_fusion=False)
    return out


def ref():
    return torch.zeros(64)
