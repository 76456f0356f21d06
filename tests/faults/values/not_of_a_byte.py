"""~ of a byte that is 0 or 1 is never 0."""

import torch
import triton
import triton.language as tl

FINDS = {"wrong-value": ["*"]}


@triton.jit
def drop(x_ptr, m_ptr, out_ptr, n, B: tl.constexpr):
    o = tl.arange(0, B)
    keep = ~tl.load(m_ptr + o, mask=o < n, other=0)
    x = tl.load(x_ptr + o, mask=o < n, other=0.0)
    tl.store(out_ptr + o, tl.where(keep, x, 0.0), mask=o < n)  # here: wrong-value


def data():
    return torch.arange(10.0), (torch.arange(10) % 2).to(torch.int8)


def run(dev):
    x, m = (t.to(dev) for t in data())
    out = torch.empty_like(x)
    drop[(1,)](x, m, out, 10, B=16)
    return out


def ref():
    x, m = data()
    return torch.where(m.bool(), 0.0, x)
