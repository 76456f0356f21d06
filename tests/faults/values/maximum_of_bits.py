"""A maximum of floats by an integer atomic on their bits, which is wrong below zero."""

import torch
import triton
import triton.language as tl

FINDS = {"wrong-value": ["*"]}
PASSES = ["cuda:90", "hip:gfx942"]


@triton.jit
def maximum(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    bits = tl.max(tl.load(x_ptr + offsets), 0).to(tl.int32, bitcast=True)
    tl.atomic_max(out_ptr.to(tl.pointer_type(tl.int32)), bits)  # here: wrong-value


def data():
    return -torch.rand(256) - 1


def run(dev):
    x = data().to(dev)
    out = torch.full((1,), -float("inf"), device=dev)
    maximum[(4,)](x, out, BLOCK=64)
    return out


def ref():
    return data().amax().reshape(1)
