"""Sums that begin anew at flags: associative, and in order."""

import torch
import triton
import triton.language as tl

FINDS = {}
PASSES = ["interpreter"]
LACKS = {"reduce-order": ["interpreter"]}


@triton.jit
def seg(va, fa, vb, fb):
    return tl.where(fb != 0, vb, va + vb), fa | fb


@triton.jit
def scan(x_ptr, f_ptr, out_ptr, B: tl.constexpr):
    o = tl.arange(0, B)
    v, _ = tl.associative_scan((tl.load(x_ptr + o), tl.load(f_ptr + o)), 0, seg)
    tl.store(out_ptr + o, v)


def data():
    torch.manual_seed(1)
    return torch.randn(32), (torch.arange(32) % 5 == 0).int()


def run(dev):
    x, f = (t.to(dev) for t in data())
    out = torch.empty_like(x)
    scan[(1,)](x, f, out, B=32)
    return out


def ref():
    x, _ = data()
    return torch.cat([s.cumsum(0) for s in x.split(5)])
