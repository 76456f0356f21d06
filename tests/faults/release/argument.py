"""A configuration with an argument that Triton took for a while."""

import torch
import triton
import triton.language as tl

FINDS = {"not-imported": ["interpreter", "cuda:90"]}


@triton.autotune([triton.Config({"B": 16}, num_warps=4, num_consumer_groups=2)], key=[])  # here: not-imported
@triton.jit
def copy(x_ptr, out_ptr, B: tl.constexpr):
    o = tl.arange(0, B)
    tl.store(out_ptr + o, tl.load(x_ptr + o))


def data():
    return torch.arange(16.0)


def run(dev):
    x = data().to(dev)
    out = torch.empty_like(x)
    copy[(1,)](x, out)
    return out


def ref():
    return data()
