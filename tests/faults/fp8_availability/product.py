"""A product of e4m3: refused before Ada; Hopper widens what is too small for its own instruction."""

import torch
import triton
import triton.language as tl

FINDS = {"float8-type": ["cuda:86"], "dot-emulated": ["cuda:90", "hip:gfx942"]}
PASSES = ["cuda:89", "cuda:90", "hip:gfx942", "hip:gfx1201", "interpreter"]
LACKS = {"dot-emulated": ["cuda:89", "hip:gfx1201"]}


@triton.jit
def product(a_ptr, b_ptr, out_ptr, N: tl.constexpr):  # here: float8-type
    i = tl.arange(0, N)
    at = i[:, None] * N + i[None, :]
    tl.store(out_ptr + at, tl.dot(tl.load(a_ptr + at), tl.load(b_ptr + at)))  # here: dot-emulated


def data():
    torch.manual_seed(4)
    return [(torch.randint(-8, 9, (32, 32)) / 4).to(torch.float8_e4m3fn) for _ in range(2)]


def run(dev):
    a, b = (t.to(dev) for t in data())
    out = torch.empty(32, 32, device=dev)
    product[(1,)](a, b, out, N=32)
    return out


def ref():
    a, b = data()
    return a.float() @ b.float()
