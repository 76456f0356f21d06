"""The parts of a sum are each added to one output by load and store."""

import torch
import triton
import triton.language as tl

FINDS = {"race": ["*"]}


@triton.jit
def product(a_ptr, b_ptr, out_ptr, K, BLOCK: tl.constexpr, PART: tl.constexpr):
    i, k = tl.arange(0, BLOCK), tl.program_id(0) * PART + tl.arange(0, PART)
    a = tl.load(a_ptr + i[:, None] * K + k[None, :])
    b = tl.load(b_ptr + k[:, None] * BLOCK + i[None, :])
    at = out_ptr + i[:, None] * BLOCK + i[None, :]
    tl.store(at, tl.load(at) + tl.dot(a, b))  # here: race


def data():
    torch.manual_seed(5)
    return torch.randn(16, 64).half(), torch.randn(64, 16).half()


def run(dev):
    a, b = (t.to(dev) for t in data())
    out = torch.zeros(16, 16, device=dev)
    product[(4,)](a, b, out, 64, BLOCK=16, PART=16)
    return out


def ref():
    a, b = data()
    return a.double() @ b.double()
