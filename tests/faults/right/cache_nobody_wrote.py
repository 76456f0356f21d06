"""Rows of a cache that nobody wrote are loaded, and thrown away after the product."""

import torch
import triton
import triton.language as tl

FINDS = {}
PASSES = ["interpreter"]


@triton.jit
def attend(q_ptr, k_ptr, v_ptr, out_ptr, n, T: tl.constexpr, D: tl.constexpr):
    t, d = tl.arange(0, T), tl.arange(0, D)
    q = tl.load(q_ptr + d)
    m = t[:, None] < n
    k = tl.load(k_ptr + t[:, None] * D + d[None, :], mask=m, other=0.0)
    v = tl.load(v_ptr + t[:, None] * D + d[None, :])
    s = tl.where(t < n, tl.sum(k * q[None, :], 1), float("-inf"))
    p = tl.exp(s - tl.max(s, 0))
    p = p / tl.sum(p, 0)
    tl.store(out_ptr + d, tl.sum(tl.where(m, p[:, None] * v, 0.0), 0))


def data():
    torch.manual_seed(1)
    return torch.randn(16), torch.randn(20, 16), torch.randn(20, 16)


def run(dev):
    q, k, v = (t.to(dev) for t in data())
    kc, vc = torch.empty(32, 16, device=dev), torch.empty(32, 16, device=dev)
    kc[:20], vc[:20] = k, v
    out = torch.empty(16, device=dev)
    attend[(1,)](q, kc, vc, out, 20, T=32, D=16)
    return out


def ref():
    q, k, v = data()
    return torch.softmax(k @ q, 0) @ v
