"""A program takes what the one before it stored: right in ascending order alone."""

import torch
import triton
import triton.language as tl

FINDS = {"race": ["*"]}


@triton.jit
def running_sum(x_ptr, carry_ptr, BLOCK: tl.constexpr):
    program = tl.program_id(0)
    offsets = program * BLOCK + tl.arange(0, BLOCK)
    carry = tl.load(carry_ptr + program)  # here: race
    x = tl.load(x_ptr + offsets)
    tl.store(x_ptr + offsets, x + carry)
    tl.store(carry_ptr + program + 1, carry + tl.sum(x, 0))


def data():
    return torch.ones(8, 16)


def run(dev):
    x = data().to(dev).clone()
    running_sum[(8,)](x, torch.zeros(9, device=dev), BLOCK=16)
    return x


def ref():
    return data() + (torch.arange(8) * 16.0)[:, None]
