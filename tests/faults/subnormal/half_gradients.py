"""Gradients in half precision that are subnormal: one architecture's matrix unit takes 0 for them."""

import torch
import triton
import triton.language as tl

FINDS = {"flushed-product": ["hip:gfx90a"]}
PASSES = ["cuda:90", "hip:gfx90a", "hip:gfx942", "interpreter"]
LACKS = {"flushed-product": ["hip:gfx942", "cuda:90", "interpreter"]}


@triton.jit
def weight_gradient(x_ptr, g_ptr, out_ptr, N: tl.constexpr):
    at = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(out_ptr + at, tl.dot(tl.trans(tl.load(x_ptr + at)), tl.load(g_ptr + at)))  # here: flushed-product


def data():
    torch.manual_seed(0)
    return torch.randn(32, 32).half(), (torch.randn(32, 32) * 2e-5).half()


def run(dev):
    x, g = (t.to(dev) for t in data())
    out = torch.empty(32, 32, device=dev)
    weight_gradient[(1,)](x, g, out, N=32)
    return out


def ref():
    x, g = (t.double() for t in data())
    return (x.T @ g).float()
