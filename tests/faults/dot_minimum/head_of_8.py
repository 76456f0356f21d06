"""Scores of heads that are 8 wide, in bfloat16."""

import torch
import triton
import triton.language as tl

FINDS = {"dot-minimum": ["cuda:90", "cuda:120"]}
PASSES = ["hip:gfx1201", "interpreter"]


@triton.jit
def scores(q_ptr, k_ptr, out_ptr, scale, N: tl.constexpr, D: tl.constexpr):
    i, d = tl.arange(0, N), tl.arange(0, D)
    q = tl.load(q_ptr + i[:, None] * D + d[None, :])
    k = tl.load(k_ptr + i[:, None] * D + d[None, :])
    tl.store(out_ptr + i[:, None] * N + i[None, :], tl.dot(q, tl.trans(k)) * scale)  # here: dot-minimum


def data():
    torch.manual_seed(13)
    return torch.randn(32, 8).bfloat16(), torch.randn(32, 8).bfloat16()


def run(dev):
    q, k = (t.to(dev) for t in data())
    out = torch.empty(32, 32, device=dev)
    scores[(1,)](q, k, out, 8**-0.5, N=32, D=8)
    return out


def ref():
    q, k = data()
    return q.float() @ k.float().T * 8**-0.5
