"""A product of MI300's own e4m3: no NVIDIA target has it, and other AMD targets widen it."""

import torch
import triton
import triton.language as tl

FINDS = {"float8-type": ["cuda:90"], "dot-emulated": ["hip:gfx90a", "hip:gfx950", "hip:gfx1201"]}
PASSES = ["hip:gfx90a", "hip:gfx942", "hip:gfx950", "hip:gfx1201", "interpreter"]
LACKS = {"dot-emulated": ["hip:gfx942"]}


@triton.jit
def product(a_ptr, b_ptr, out_ptr, N: tl.constexpr):  # here: float8-type
    i = tl.arange(0, N)
    at = i[:, None] * N + i[None, :]
    tl.store(out_ptr + at, tl.dot(tl.load(a_ptr + at), tl.load(b_ptr + at)))  # here: dot-emulated


def data():
    torch.manual_seed(4)
    return [(torch.randint(-8, 9, (32, 32)) / 4).to(torch.float8_e4m3fnuz) for _ in range(2)]


def run(dev):
    a, b = (t.to(dev) for t in data())
    out = torch.empty(32, 32, device=dev)
    product[(1,)](a, b, out, N=32)
    return out


def ref():
    a, b = data()
    return a.float() @ b.float()
