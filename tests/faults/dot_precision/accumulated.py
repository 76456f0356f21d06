"""The same in a loop over K."""

import torch
import triton
import triton.language as tl

FINDS = {"dot-precision": ["cuda:90", "hip:gfx942"]}
PASSES = ["cuda:90", "hip:gfx90a", "interpreter"]
LACKS = {"dot-precision": ["hip:gfx90a"]}


@triton.jit
def product(a_ptr, b_ptr, out_ptr, K, N: tl.constexpr):
    i = tl.arange(0, N)
    total = tl.zeros((N, N), tl.float32)
    for start in range(0, K, N):
        inside = start + i < K
        a = tl.load(a_ptr + i[:, None] * K + start + i[None, :], mask=inside[None, :], other=0.0)
        b = tl.load(b_ptr + (start + i[:, None]) * N + i[None, :], mask=inside[:, None], other=0.0)
        total += tl.dot(a, b)  # here: dot-precision
    tl.store(out_ptr + i[:, None] * N + i[None, :], total)


def data():
    torch.manual_seed(16)
    return torch.randn(16, 40), torch.randn(40, 16)


def run(dev):
    a, b = (t.to(dev) for t in data())
    out = torch.empty(16, 16, device=dev)
    product[(1,)](a, b, out, 40, N=16)
    return out


def ref():
    a, b = data()
    return a @ b
