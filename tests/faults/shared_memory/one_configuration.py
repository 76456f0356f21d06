"""A tuned configuration that only the largest targets can hold: elsewhere tuning drops it without a word."""

import torch
import triton
import triton.language as tl

FINDS = {"config-fails": ["cuda:86"]}
PASSES = ["cuda:86", "hip:gfx942", "interpreter"]


@triton.autotune(
    configs=[
        triton.Config({"BLOCK_K": 32}, num_warps=4, num_stages=1),
        triton.Config({"BLOCK_K": 512}, num_warps=4, num_stages=1),
    ],
    key=[],
)
@triton.jit
def product(a_ptr, b_ptr, out_ptr, K, M: tl.constexpr, BLOCK_K: tl.constexpr):  # here: config-fails
    m, k = tl.arange(0, M), tl.arange(0, BLOCK_K)
    total = tl.zeros((M, M), tl.float32)
    for start in range(0, K, BLOCK_K):
        a = tl.load(a_ptr + m[:, None] * K + start + k[None, :])
        b = tl.load(b_ptr + (start + k[:, None]) * M + m[None, :])
        total = tl.dot(a, b, total)
    tl.store(out_ptr + m[:, None] * M + m[None, :], total)


def data():
    torch.manual_seed(3)
    return torch.randn(64, 512).half(), torch.randn(512, 64).half()


def run(dev):
    a, b = (t.to(dev) for t in data())
    out = torch.empty(64, 64, device=dev)
    product[(1,)](a, b, out, 512, M=64)
    return out


def ref():
    a, b = data()
    return a.float() @ b.float()
