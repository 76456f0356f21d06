"""A sum of int8 that is kept in int8 wraps round."""

import torch
import triton
import triton.language as tl

FINDS = {"wrong-value": ["*"]}


@triton.jit
def total(x_ptr, out_ptr, BLOCK: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, BLOCK))
    acc = tl.zeros((BLOCK,), tl.int8)
    for _ in range(4):
        acc += x
    tl.store(out_ptr + tl.arange(0, BLOCK), acc.to(tl.int32))  # here: wrong-value


def data():
    return torch.full((16,), 100, dtype=torch.int8)


def run(dev):
    out = torch.empty(16, dtype=torch.int32, device=dev)
    total[(1,)](data().to(dev), out, BLOCK=16)
    return out


def ref():
    return data().int() * 4
