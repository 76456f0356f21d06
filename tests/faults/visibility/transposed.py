"""A transposition through memory of the program's own."""

import torch
import triton
import triton.language as tl

FINDS = {"missing-barrier": ["*"]}
PASSES = ["hip:gfx942", "interpreter"]


@triton.jit
def transpose(x_ptr, scratch_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    straight, across = i[:, None] * N + i[None, :], i[None, :] * N + i[:, None]
    tl.store(scratch_ptr + straight, tl.load(x_ptr + straight))
    tl.store(out_ptr + straight, tl.load(scratch_ptr + across))  # here: missing-barrier


def data():
    return torch.arange(256, dtype=torch.float32).reshape(16, 16)


def run(dev):
    x = data().to(dev)
    out = torch.empty_like(x)
    transpose[(1,)](x, torch.empty_like(x), out, N=16)
    return out


def ref():
    return data().T
