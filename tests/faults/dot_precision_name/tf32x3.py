"""A three-part TF32 product: no AMD target takes it."""

import torch
import triton
import triton.language as tl

FINDS = {"dot-precision-name": ["hip:gfx942", "hip:gfx950"]}
PASSES = ["cuda:90", "interpreter"]


@triton.jit
def product(a_ptr, b_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    at = i[:, None] * N + i[None, :]
    a, b = tl.load(a_ptr + at), tl.load(b_ptr + at)
    tl.store(out_ptr + at, tl.dot(a, b, input_precision="tf32x3"))  # here: dot-precision-name


def data():
    torch.manual_seed(6)
    return torch.randn(32, 32), torch.randn(32, 32)


def run(dev):
    a, b = (t.to(dev) for t in data())
    out = torch.empty(32, 32, device=dev)
    product[(1,)](a, b, out, N=32)
    return out


def ref():
    a, b = data()
    return a @ b
