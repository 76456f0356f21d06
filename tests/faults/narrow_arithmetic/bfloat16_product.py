"""A product of bfloat16, which stock Triton's interpreter computes on raw bits."""

import torch
import triton
import triton.language as tl

FINDS = {}
PASSES = ["cuda:90", "hip:gfx942", "interpreter"]


@triton.jit
def product(a_ptr, b_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    at = i[:, None] * N + i[None, :]
    tl.store(out_ptr + at, tl.dot(tl.load(a_ptr + at), tl.load(b_ptr + at)).to(tl.bfloat16))


def data():
    torch.manual_seed(23)
    return [torch.randn(16, 16).bfloat16() for _ in range(2)]


def run(dev):
    a, b = (t.to(dev) for t in data())
    out = torch.empty(16, 16, dtype=torch.bfloat16, device=dev)
    product[(1,)](a, b, out, N=16)
    return out


def ref():
    a, b = data()
    return (a.float() @ b.float()).bfloat16()
