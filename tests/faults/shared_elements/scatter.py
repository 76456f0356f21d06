"""A scatter by store, of rows that come more than once."""

import torch
import triton
import triton.language as tl

FINDS = {"store-collision": ["*"]}


@triton.jit
def scatter(index_ptr, x_ptr, out_ptr, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    at = tl.load(index_ptr + lanes)
    tl.store(out_ptr + at, tl.load(out_ptr + at) + tl.load(x_ptr + lanes))


def data():
    return torch.tensor([0, 1, 1, 3, 0, 2, 3, 3]), torch.arange(8.0)


def run(dev):
    index, x = (t.to(dev) for t in data())
    out = torch.zeros(4, device=dev)
    scatter[(1,)](index, x, out, BLOCK=8)
    return out


def ref():
    index, x = data()
    return torch.zeros(4).index_add(0, index, x)
