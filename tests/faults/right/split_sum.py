"""Programs take turns by a lock: they add the same numbers in whatever order, and these are whole."""

import torch
import triton
import triton.language as tl

FINDS = {}
PASSES = ["interpreter"]


@triton.jit
def split(x_ptr, out_ptr, lock_ptr, B: tl.constexpr):
    p = tl.program_id(0)
    x = tl.load(x_ptr + p * B + tl.arange(0, B))
    while tl.atomic_cas(lock_ptr, 0, 1) == 1:
        pass
    tl.store(out_ptr + tl.arange(0, B), tl.load(out_ptr + tl.arange(0, B)) + x)
    tl.debug_barrier()
    tl.atomic_xchg(lock_ptr, 0)


def data():
    return torch.arange(64.0)


def run(dev):
    x = data().to(dev)
    out = torch.zeros(16, device=dev)
    lock = torch.zeros(1, dtype=torch.int32, device=dev)
    split[(4,)](x, out, lock, B=16)
    return out


def ref():
    return data().reshape(4, 16).sum(0)
