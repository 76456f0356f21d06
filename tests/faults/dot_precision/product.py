"""A product of float32 whose precision is left to the target."""

import torch
import triton
import triton.language as tl

FINDS = {"dot-precision": ["cuda:80", "cuda:90", "hip:gfx942"]}
PASSES = ["cuda:75", "cuda:80", "cuda:90", "hip:gfx942", "hip:gfx950", "interpreter"]
LACKS = {"dot-precision": ["cuda:75", "hip:gfx950"]}


@triton.jit
def product(a_ptr, b_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    at = i[:, None] * N + i[None, :]
    tl.store(out_ptr + at, tl.dot(tl.load(a_ptr + at), tl.load(b_ptr + at)))  # here: dot-precision


def data():
    torch.manual_seed(6)
    return torch.randn(32, 32) * 30, torch.randn(32, 32) * 30


def run(dev):
    a, b = (t.to(dev) for t in data())
    out = torch.empty(32, 32, device=dev)
    product[(1,)](a, b, out, N=32)
    return out


def ref():
    a, b = data()
    return a @ b
