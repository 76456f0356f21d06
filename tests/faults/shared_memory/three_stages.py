"""A tile for Hopper's shared memory: three stages of two 128 × 64 halves."""

import torch
import triton
import triton.language as tl

FINDS = {"shared-memory": ["cuda:86", "cuda:120", "hip:gfx942", "hip:gfx1201"]}
PASSES = ["cuda:90", "interpreter"]


@triton.jit
def product(
    a_ptr, b_ptr, out_ptr, K, stride_a, stride_b, stride_out, M: tl.constexpr, N: tl.constexpr, BLOCK_K: tl.constexpr
):
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + m[:, None] * stride_a + k[None, :]
    b_ptrs = b_ptr + k[:, None] * stride_b + n[None, :]
    total = tl.zeros((M, N), tl.float32)
    for _ in range(0, K, BLOCK_K):
        total = tl.dot(tl.load(a_ptrs), tl.load(b_ptrs), total)
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K * stride_b
    tl.store(out_ptr + m[:, None] * stride_out + n[None, :], total)


def data():
    torch.manual_seed(1)
    return torch.randn(128, 256).half(), torch.randn(256, 256).half()


def run(dev):
    a, b = (t.to(dev) for t in data())
    out = torch.empty(128, 256, device=dev)
    blocks = {"M": 128, "N": 256, "BLOCK_K": 64, "num_warps": 8, "num_stages": 4}
    product[(1,)](a, b, out, 256, 256, 256, 256, **blocks)  # here: shared-memory
    return out


def ref():
    a, b = data()
    return a.float() @ b.float()
