"""A sum by load and compare-and-swap that does not try again: lost wherever two programs load before either swaps."""

import torch
import triton
import triton.language as tl

FINDS = {"race": ["*"]}


@triton.jit
def add(x_ptr, out_ptr):
    old = tl.load(out_ptr)  # here: race
    tl.atomic_cas(out_ptr, old, old + tl.load(x_ptr + tl.program_id(0)))


def data():
    return torch.arange(1, 9, dtype=torch.int32)


def run(dev):
    out = torch.zeros(1, dtype=torch.int32, device=dev)
    add[(8,)](data().to(dev), out)
    return out


def ref():
    return data().sum().to(torch.int32).reshape(1)
