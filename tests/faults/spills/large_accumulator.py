"""A tile of 256 × 256 on four warps: 512 registers a thread for its sums alone."""

import torch
import triton
import triton.language as tl

FINDS = {"register-spills": ["cuda:80"]}
PASSES = ["cuda:80", "interpreter"]


@triton.jit
def mm(a_ptr, b_ptr, out_ptr, K, M: tl.constexpr, N: tl.constexpr, BK: tl.constexpr):  # here: register-spills
    i, j, k = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :], tl.arange(0, BK)
    acc = tl.zeros((M, N), tl.float32)
    for s in range(0, K, BK):
        a = tl.load(a_ptr + i * K + (s + k)[None, :])
        b = tl.load(b_ptr + (s + k)[:, None] * N + j)
        acc += tl.dot(a, b)
    tl.store(out_ptr + i * N + j, acc.to(tl.float16))


def data():
    torch.manual_seed(1)
    return torch.randn(256, 64).half(), torch.randn(64, 256).half()


def run(dev):
    a, b = (t.to(dev) for t in data())
    out = torch.empty(256, 256, dtype=torch.float16, device=dev)
    mm[(1,)](a, b, out, 64, M=256, N=256, BK=32, num_warps=4, num_stages=2)
    return out


def ref():
    a, b = data()
    return a.double() @ b.double()
