"""A total of floats by atomics: its last bits depend on the order of programs."""

import torch
import triton
import triton.language as tl

FINDS = {"nondeterministic": ["*"]}
PASSES = ["cuda:90", "hip:gfx942"]


@triton.jit
def total(x_ptr, out_ptr, BLOCK: tl.constexpr):
    x = tl.load(x_ptr + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK))
    tl.atomic_add(out_ptr, tl.sum(x, 0))  # here: nondeterministic


def data():
    torch.manual_seed(1)
    return torch.randn(640)


def run(dev):
    out = torch.zeros(1, device=dev)
    total[(10,)](data().to(dev), out, BLOCK=64)
    return out


def ref():
    return data().sum().reshape(1)
