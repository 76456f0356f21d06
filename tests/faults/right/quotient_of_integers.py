"""The bucket of a whole number by a division of integers, and of a float by one that is rounded correctly."""

import torch
import triton
import triton.language as tl

FINDS = {}
PASSES = ["interpreter", "cuda:90", "hip:gfx942"]
LACKS = {"approximate-quotient": ["cuda:90", "hip:gfx942"], "approximate-root": ["cuda:90"]}


@triton.jit
def buckets(x_ptr, out_ptr, width, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    tl.store(out_ptr + i, x.to(tl.int32) // width)
    tl.store(out_ptr + BLOCK + i, tl.floor(tl.div_rn(x, width.to(tl.float32))).to(tl.int32))
    tl.store(out_ptr + 2 * BLOCK + i, tl.sqrt_rn(x * x).to(tl.int32) // width)


def data():
    return torch.arange(128.0) * 49


def run(dev):
    x = data().to(dev)
    out = torch.empty(3, 128, dtype=torch.int32, device=dev)
    buckets[(1,)](x, out, 49, BLOCK=128)
    return out


def ref():
    return torch.arange(128, dtype=torch.int32).expand(3, 128)
