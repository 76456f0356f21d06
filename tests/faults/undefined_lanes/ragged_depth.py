"""A product whose last block of K is masked on one side, and undefined on the other."""

import torch
import triton
import triton.language as tl

FINDS = {"undefined-lanes": ["*"]}
PASSES = ["cuda:90"]


@triton.jit
def product(a_ptr, b_ptr, out_ptr, K, N: tl.constexpr):
    i = tl.arange(0, N)
    total = tl.zeros((N, N), tl.float32)
    for start in range(0, K, N):
        inside = start + i < K
        a = tl.load(a_ptr + i[:, None] * K + start + i[None, :], mask=inside[None, :], other=0.0)
        b = tl.load(b_ptr + (start + i[:, None]) * N + i[None, :], mask=inside[:, None])
        total = tl.dot(a, b, total)
    tl.store(out_ptr + i[:, None] * N + i[None, :], total)  # here: undefined-lanes


def data():
    torch.manual_seed(9)
    return torch.randn(16, 40).half(), torch.randn(40, 16).half()


def run(dev):
    a, b = (t.to(dev) for t in data())
    out = torch.empty(16, 16, device=dev)
    product[(1,)](a, b, out, 40, N=16)
    return out


def ref():
    a, b = data()
    return a.float() @ b.float()
