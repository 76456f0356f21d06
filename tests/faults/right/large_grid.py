"""More programs than are interpreted: what the others would store is not judged."""

import torch
import triton
import triton.language as tl

FINDS = {}
PASSES = ["cuda:90", "hip:gfx942", "interpreter"]
N = 20_000


@triton.jit
def square(x_ptr, out_ptr):
    i = tl.program_id(0)
    x = tl.load(x_ptr + i)
    tl.store(out_ptr + i, x * x)


def data():
    return torch.linspace(-1, 1, N)


def run(dev):
    x = data().to(dev)
    out = torch.zeros_like(x)
    square[(N,)](x, out)
    return out


def ref():
    return data() ** 2
