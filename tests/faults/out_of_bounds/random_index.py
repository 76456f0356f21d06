"""A random index by the remainder of a signed number."""

import torch
import triton
import triton.language as tl

FINDS = {"out-of-bounds": ["*"], "mixed-signs": ["*"]}


@triton.jit
def sample(x_ptr, out_ptr, seed, n, B: tl.constexpr):
    o = tl.arange(0, B)
    i = tl.randint(seed, o).to(tl.int32) % n  # here: mixed-signs
    tl.store(out_ptr + o, tl.load(x_ptr + i))  # here: out-of-bounds


def data():
    return torch.full((10,), 3.0)


def run(dev):
    x = data().to(dev)
    out = torch.empty(64, device=dev)
    sample[(1,)](x, out, 5, 10, B=64)
    return out


def ref():
    return torch.full((64,), 3.0)
