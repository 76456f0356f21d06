"""A product of bfloat16: Turing has no such instruction."""

import torch
import triton
import triton.language as tl

FINDS = {"dot-emulated": ["cuda:75"]}
PASSES = ["cuda:75", "cuda:80", "hip:gfx90a", "interpreter"]
LACKS = {"dot-emulated": ["cuda:80", "hip:gfx90a"]}


@triton.jit
def product(a_ptr, b_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    at = i[:, None] * N + i[None, :]
    tl.store(out_ptr + at, tl.dot(tl.load(a_ptr + at), tl.load(b_ptr + at)))  # here: dot-emulated


def data():
    torch.manual_seed(5)
    return [torch.randint(-3, 4, (32, 32)).to(torch.bfloat16) for _ in range(2)]


def run(dev):
    a, b = (t.to(dev) for t in data())
    out = torch.empty(32, 32, device=dev)
    product[(1,)](a, b, out, N=32)
    return out


def ref():
    a, b = data()
    return a.float() @ b.float()
