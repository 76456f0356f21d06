"""Softmax weights rounded to bfloat16 before their product with V."""

import torch
import triton
import triton.language as tl

FINDS = {"dot-emulated": ["cuda:75"]}
PASSES = ["cuda:75", "hip:gfx1201", "interpreter"]


@triton.jit
def weigh(scores_ptr, v_ptr, out_ptr, N: tl.constexpr, D: tl.constexpr):
    i, d = tl.arange(0, N), tl.arange(0, D)
    scores = tl.load(scores_ptr + i[:, None] * N + i[None, :])
    weights = tl.exp(scores - tl.max(scores, 1)[:, None])
    weights = weights / tl.sum(weights, 1)[:, None]
    v = tl.load(v_ptr + i[:, None] * D + d[None, :])
    tl.store(out_ptr + i[:, None] * D + d[None, :], tl.dot(weights.to(v.dtype), v))  # here: dot-emulated


def data():
    torch.manual_seed(7)
    return torch.randn(32, 32), torch.randn(32, 16).bfloat16()


def run(dev):
    scores, v = (t.to(dev) for t in data())
    out = torch.empty(32, 16, device=dev)
    weigh[(1,)](scores, v, out, N=32, D=16)
    return out


def ref():
    scores, v = data()
    return torch.softmax(scores, -1) @ v.float()
