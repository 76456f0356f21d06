"""The same in a loop over blocks of K, with a ragged end."""

import torch
import triton
import triton.language as tl

FINDS = {"dot-emulated": ["cuda:75"]}
PASSES = ["cuda:75", "cuda:80", "interpreter"]


@triton.jit
def product(a_ptr, b_ptr, out_ptr, K, N: tl.constexpr, BLOCK_K: tl.constexpr):
    i, k = tl.arange(0, N), tl.arange(0, BLOCK_K)
    total = tl.zeros((N, N), tl.float32)
    for start in range(0, K, BLOCK_K):
        inside = start + k < K
        a = tl.load(a_ptr + i[:, None] * K + start + k[None, :], mask=inside[None, :], other=0.0)
        b = tl.load(b_ptr + (start + k[:, None]) * N + i[None, :], mask=inside[:, None], other=0.0)
        total = tl.dot(a, b, total)  # here: dot-emulated
    tl.store(out_ptr + i[:, None] * N + i[None, :], total)


def data():
    torch.manual_seed(6)
    return torch.randn(16, 72).bfloat16(), torch.randn(72, 16).bfloat16()


def run(dev):
    a, b = (t.to(dev) for t in data())
    out = torch.empty(16, 16, device=dev)
    product[(1,)](a, b, out, 72, N=16, BLOCK_K=32)
    return out


def ref():
    a, b = data()
    return a.float() @ b.float()
