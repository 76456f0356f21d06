"""A total of floats by atomics, bit for bit another from run to run."""

import torch
import triton
import triton.language as tl

FINDS = {"nondeterministic": ["*"]}


@triton.jit
def total(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out_ptr, tl.sum(tl.load(x_ptr + offsets), 0))


def data():
    torch.manual_seed(4)
    return torch.randn(512)


def run(dev):
    out = torch.zeros(1, device=dev)
    total[(16,)](data().to(dev), out, BLOCK=32)
    return out


def ref():
    return data().double().sum().reshape(1)
