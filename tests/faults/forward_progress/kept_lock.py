"""A lock that one path does not give back."""

import torch
import triton
import triton.language as tl

FINDS = {"timeout": ["*"]}
PASSES = ["cuda:90"]


@triton.jit
def add_positive(x_ptr, lock_ptr, out_ptr):
    x = tl.load(x_ptr + tl.program_id(0))
    while tl.atomic_cas(lock_ptr, 0, 1) == 1:  # here: timeout
        pass
    if x > 0:
        tl.store(out_ptr, tl.load(out_ptr) + x)
        tl.debug_barrier()
        tl.atomic_xchg(lock_ptr, 0)


def data():
    return torch.tensor([1.0, -1.0, 2.0, 3.0])


def run(dev):
    lock, out = torch.zeros(1, dtype=torch.int32, device=dev), torch.zeros(1, device=dev)
    add_positive[(4,)](data().to(dev), lock, out)
    return out


def ref():
    return data().clamp(min=0).sum().reshape(1)
