"""Numbers of 64 bits are compared by their low 32."""

import torch
import triton
import triton.language as tl

FINDS = {"wrong-value": ["*"]}


@triton.jit
def same(a_ptr, b_ptr, out_ptr, n, B: tl.constexpr):
    o = tl.arange(0, B)
    a = tl.load(a_ptr + o, mask=o < n, other=0).to(tl.int32)
    b = tl.load(b_ptr + o, mask=o < n, other=0).to(tl.int32)
    tl.store(out_ptr + o, (a == b).to(tl.int32), mask=o < n)  # here: wrong-value


def data():
    a = torch.arange(10)
    return a, a + (2**32) * (a % 2)


def run(dev):
    a, b = (t.to(dev) for t in data())
    out = torch.empty(10, dtype=torch.int32, device=dev)
    same[(1,)](a, b, out, 10, B=16)
    return out


def ref():
    a, b = data()
    return (a == b).int()
