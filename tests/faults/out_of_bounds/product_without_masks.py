"""A matrix product without masks: right for multiples of the block alone."""

import torch
import triton
import triton.language as tl

FINDS = {"out-of-bounds": ["*"], "wrong-value": ["*"]}
PASSES = ["cuda:90", "hip:gfx942"]


@triton.jit
def product(a_ptr, b_ptr, out_ptr, M, N, K, BLOCK: tl.constexpr):
    m = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    n = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    k = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for start in range(0, K, BLOCK):
        a = tl.load(a_ptr + m[:, None] * K + start + k[None, :])  # here: out-of-bounds
        b = tl.load(b_ptr + (start + k[:, None]) * N + n[None, :])  # here: out-of-bounds
        total = tl.dot(a, b, total)
    tl.store(out_ptr + m[:, None] * N + n[None, :], total)  # here: wrong-value, out-of-bounds


def data():
    torch.manual_seed(10)
    return torch.randn(20, 36).half(), torch.randn(36, 28).half()


def run(dev):
    a, b = (t.to(dev) for t in data())
    out = torch.empty(20, 28, device=dev)
    product[(2, 2)](a, b, out, 20, 28, 36, BLOCK=16)
    return out


def ref():
    a, b = data()
    return a.float() @ b.float()
