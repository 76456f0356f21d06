"""Each configuration writes a part of its own: tuning runs all on one output, which hides it."""

import torch
import triton
import triton.language as tl

FINDS = {"wrong-value": ["*"]}


@triton.autotune(configs=[triton.Config({"FIRST": 0}), triton.Config({"FIRST": 512})], key=[])
@triton.jit
def add(x_ptr, y_ptr, out_ptr, FIRST: tl.constexpr, BLOCK: tl.constexpr):  # here: wrong-value
    offsets = FIRST + tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets) + tl.load(y_ptr + offsets))


def data():
    return torch.randn(1024), torch.randn(1024)


def run(dev):
    x, y = (t.to(dev) for t in data())
    out = torch.empty_like(x)
    add[(1,)](x, y, out, BLOCK=512)
    return out


def ref():
    x, y = data()
    return x + y
