"""A lock that is taken and never given back: the second program waits for ever."""

import torch
import triton
import triton.language as tl

FINDS = {"timeout": ["*"]}
PASSES = ["cuda:90"]


@triton.jit
def add_under_lock(x_ptr, lock_ptr, out_ptr):
    while tl.atomic_cas(lock_ptr, 0, 1) == 1:  # here: timeout
        pass
    tl.store(out_ptr, tl.load(out_ptr) + tl.load(x_ptr + tl.program_id(0)))


def data():
    return torch.arange(3, dtype=torch.float32)


def run(dev):
    lock = torch.zeros(1, dtype=torch.int32, device=dev)
    out = torch.zeros(1, device=dev)
    add_under_lock[(3,)](data().to(dev), lock, out)
    return out


def ref():
    return data().sum().reshape(1)
