"""A product of float8 whose parts are added in float32, as the kernel asks."""

import torch
import triton
import triton.language as tl

FINDS = {}
PASSES = ["cuda:90", "hip:gfx942", "interpreter"]
LACKS = {"dot-imprecise": ["cuda:90"]}


@triton.jit
def product(a_ptr, b_ptr, c_ptr, K, N: tl.constexpr, BLOCK_K: tl.constexpr):
    i, k = tl.arange(0, N), tl.arange(0, BLOCK_K)
    total = tl.zeros((N, N), dtype=tl.float32)
    for start in range(0, K, BLOCK_K):
        a = tl.load(a_ptr + i[:, None] * K + start + k[None, :])
        b = tl.load(b_ptr + i[None, :] * K + start + k[:, None])
        total = tl.dot(a, b, total, max_num_imprecise_acc=32)
    tl.store(c_ptr + i[:, None] * N + i[None, :], total)


def data():
    torch.manual_seed(0)
    return torch.randn(2, 64, 256).to(torch.float8_e5m2)


def run(dev):
    a, b = data().to(dev)
    c = torch.empty(64, 64, device=dev)
    product[(1,)](a, b, c, 256, N=64, BLOCK_K=64)
    return c


def ref():
    a, b = data().float()
    return a @ b.T
