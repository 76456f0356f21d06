"""Programs update one maximum by load and store."""

import torch
import triton
import triton.language as tl

FINDS = {"race": ["*"]}


@triton.jit
def largest(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mine = tl.max(tl.load(x_ptr + offsets), 0)
    tl.store(out_ptr, tl.maximum(tl.load(out_ptr), mine))  # here: race


def data():
    return torch.arange(128, dtype=torch.float32)


def run(dev):
    out = torch.full((1,), float("-inf"), device=dev)
    largest[(4,)](data().to(dev), out, BLOCK=32)
    return out


def ref():
    return data().max().reshape(1)
