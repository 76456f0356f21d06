"""A product summed up in float16: its error grows with K."""

import torch
import triton
import triton.language as tl

FINDS = {"half-accumulator": ["cuda:90", "hip:gfx942"]}


@triton.jit
def product(a_ptr, b_ptr, out_ptr, K, N: tl.constexpr):
    i = tl.arange(0, N)
    total = tl.zeros((N, N), tl.float16)
    for start in range(0, K, N):
        a = tl.load(a_ptr + i[:, None] * K + start + i[None, :])
        b = tl.load(b_ptr + (start + i[:, None]) * N + i[None, :])
        total = tl.dot(a, b, total, out_dtype=tl.float16)  # here: half-accumulator
    tl.store(out_ptr + i[:, None] * N + i[None, :], total)


def data():
    torch.manual_seed(24)
    return torch.rand(16, 512).half(), torch.rand(512, 16).half()


def run(dev):
    a, b = (t.to(dev) for t in data())
    out = torch.empty(16, 16, dtype=torch.float16, device=dev)
    product[(1,)](a, b, out, 512, N=16)
    return out.float()


def ref():
    a, b = data()
    return a.float() @ b.float()
