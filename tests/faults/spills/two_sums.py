"""Two products of 128 × 128 on two warps: 512 registers a thread for both sums."""

import torch
import triton
import triton.language as tl

FINDS = {"register-spills": ["cuda:80"]}
PASSES = ["cuda:80", "interpreter"]


@triton.jit
def gated(x_ptr, u_ptr, v_ptr, out_ptr, K: tl.constexpr, N: tl.constexpr, BK: tl.constexpr):  # here: register-spills
    i, k = tl.arange(0, N), tl.arange(0, BK)
    a = tl.zeros((N, N), tl.float32)
    b = tl.zeros((N, N), tl.float32)
    for start in range(0, K, BK):
        x = tl.load(x_ptr + i[:, None] * K + (start + k)[None, :])
        a = tl.dot(x, tl.load(u_ptr + (start + k)[:, None] * N + i[None, :]), a)
        b = tl.dot(x, tl.load(v_ptr + (start + k)[:, None] * N + i[None, :]), b)
    tl.store(out_ptr + i[:, None] * N + i[None, :], a * tl.sigmoid(b))


def data():
    torch.manual_seed(61)
    return [torch.randn(128, 32).half(), torch.randn(32, 128).half(), torch.randn(32, 128).half()]


def run(dev):
    x, u, v = (t.to(dev) for t in data())
    out = torch.empty(128, 128, device=dev)
    gated[(1,)](x, u, v, out, K=32, N=128, BK=16, num_warps=2)
    return out


def ref():
    x, u, v = (t.double() for t in data())
    return (x @ u) * torch.sigmoid(x @ v)
