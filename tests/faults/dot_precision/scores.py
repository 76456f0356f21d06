"""Attention scores of float32 inputs."""

import torch
import triton
import triton.language as tl

FINDS = {"dot-precision": ["cuda:120", "hip:gfx942"]}
PASSES = ["cuda:120", "hip:gfx1201", "interpreter"]
LACKS = {"dot-precision": ["hip:gfx1201"]}


@triton.jit
def weights(q_ptr, k_ptr, out_ptr, scale, N: tl.constexpr, D: tl.constexpr):
    i, d = tl.arange(0, N), tl.arange(0, D)
    q = tl.load(q_ptr + i[:, None] * D + d[None, :])
    k = tl.load(k_ptr + i[:, None] * D + d[None, :])
    scores = tl.dot(q, tl.trans(k)) * scale  # here: dot-precision
    exponentials = tl.exp(scores - tl.max(scores, 1)[:, None])
    tl.store(out_ptr + i[:, None] * N + i[None, :], exponentials / tl.sum(exponentials, 1)[:, None])


def data():
    torch.manual_seed(17)
    return torch.randn(32, 16), torch.randn(32, 16)


def run(dev):
    q, k = (t.to(dev) for t in data())
    out = torch.empty(32, 32, device=dev)
    weights[(1,)](q, k, out, 0.25, N=32, D=16)
    return out


def ref():
    q, k = data()
    return torch.softmax(q @ k.T * 0.25, -1)
