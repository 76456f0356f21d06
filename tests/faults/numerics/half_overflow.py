"""A sum of squares in float16, past its largest number."""

import torch
import triton
import triton.language as tl

FINDS = {"wrong-value": ["*"], "half-accumulator": ["cuda:90"]}


@triton.jit
def norm(x_ptr, out_ptr, BLOCK: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, BLOCK))
    tl.store(out_ptr, tl.sqrt(tl.sum(x * x, 0).to(tl.float32)))  # here: wrong-value


def data():
    return torch.full((128,), 60.0).half()


def run(dev):
    out = torch.empty(1, device=dev)
    norm[(1,)](data().to(dev), out, BLOCK=128)
    return out


def ref():
    return data().double().norm().reshape(1)
