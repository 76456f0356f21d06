"""A kernel that works in place on what was taken to the device, where the file keeps its inputs for its reference."""

import functools

import torch
import triton
import triton.language as tl

FINDS = {}
PASSES = ["cuda:90", "hip:gfx942", "interpreter"]
LACKS = {"undefined-value": ["*"]}

WEIGHTS = torch.linspace(-1, 1, 40)


@triton.jit
def double(x_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(x_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) * 2, mask=mask)


@functools.cache
def inputs():
    return torch.linspace(-2, 2, 40)


def run(dev):
    weights, x = WEIGHTS.to(dev), inputs().to(dev)
    double[(2,)](weights, 40, BLOCK=32)
    double[(2,)](x.to(dev)[:40], 40, BLOCK=32)
    return weights, x


def ref():
    return WEIGHTS * 2, inputs() * 2
