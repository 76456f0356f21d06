"""An inner product of 16 bytes: NVIDIA needs 32."""

import torch
import triton
import triton.language as tl

FINDS = {"dot-minimum": ["cuda:80", "cuda:90"]}
PASSES = ["hip:gfx942", "interpreter"]


@triton.jit
def product(a_ptr, b_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    at = i[:, None] * N + i[None, :]
    tl.store(out_ptr + at, tl.dot(tl.load(a_ptr + at), tl.load(b_ptr + at)))  # here: dot-minimum


def data():
    torch.manual_seed(12)
    return [torch.randint(-100, 100, (16, 16), dtype=torch.int8) for _ in range(2)]


def run(dev):
    a, b = (t.to(dev) for t in data())
    out = torch.empty(16, 16, dtype=torch.int32, device=dev)
    product[(1,)](a, b, out, N=16)
    return out


def ref():
    a, b = data()
    return (a.double() @ b.double()).to(torch.int32)
