"""A causal row that may see nothing: 0/0."""

import torch
import triton
import triton.language as tl

FINDS = {"wrong-value": ["*"]}


@triton.jit
def weights(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    row, columns = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + columns, mask=columns < row, other=float("-inf"))
    e = tl.exp(x - tl.max(x, 0))
    tl.store(out_ptr + row * n + columns, e / tl.sum(e, 0), mask=columns < n)


def data():
    torch.manual_seed(5)
    return torch.randn(5, 5)


def run(dev):
    x = data().to(dev)
    out = torch.empty_like(x)
    weights[(5,)](x, out, 5, BLOCK=8)
    return out


def ref():
    x = data().double()
    x = x.masked_fill(torch.ones(5, 5).triu() == 1, float("-inf"))
    return torch.softmax(x, 1).nan_to_num(nan=0.0)
