"""A package of kernels that Triton had once, asked for while the file is imported."""

import torch
import triton
import triton.language as tl

FINDS = {"not-imported": ["interpreter", "cuda:90"], "TP501": ["interpreter", "cuda:90"]}


MATMUL = triton.ops.matmul  # here: not-imported, TP501


@triton.jit
def copy(x_ptr, out_ptr, B: tl.constexpr):
    o = tl.arange(0, B)
    tl.store(out_ptr + o, tl.load(x_ptr + o))


def data():
    return torch.arange(16.0)


def run(dev):
    x = data().to(dev)
    out = torch.empty_like(x)
    copy[(1,)](x, out, B=16)
    return out


def ref():
    return data()
