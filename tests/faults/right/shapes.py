"""Split, interleave, sort, flip, permute, scan from the end and gather within the block."""

import torch
import triton
import triton.language as tl

FINDS = {}
PASSES = ["cuda:90", "hip:gfx942", "interpreter"]


@triton.jit
def mix(x_ptr, out_ptr, B: tl.constexpr):
    o = tl.arange(0, B)
    x = tl.load(x_ptr + o)
    a, b = tl.split(tl.reshape(x, (B // 2, 2)))
    y = tl.interleave(b, a)
    z = tl.flip(tl.sort(y), 0)
    w = tl.permute(tl.reshape(z, (4, B // 4)), (1, 0))
    c = tl.cumsum(w, 1, reverse=True)
    g = tl.gather(tl.reshape(c, (B,)), (o + 3) % B, 0)
    tl.store(out_ptr + o, g)


def data():
    torch.manual_seed(1)
    return torch.randn(32)


def run(dev):
    x = data().to(dev)
    out = torch.empty_like(x)
    mix[(1,)](x, out, B=32)
    return out


def ref():
    z = data().sort(descending=True).values.reshape(4, 8).T
    c = z.flip(1).cumsum(1).flip(1).reshape(-1)
    return torch.roll(c, -3)
