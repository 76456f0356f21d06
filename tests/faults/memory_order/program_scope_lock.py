"""A lock that is taken for all programs, and given back for one alone."""

import torch
import triton
import triton.language as tl

FINDS = {"race": ["*"]}


@triton.jit
def add_rows(x_ptr, lock_ptr, out_ptr, BLOCK: tl.constexpr):
    columns = tl.arange(0, BLOCK)
    row = tl.load(x_ptr + tl.program_id(0) * BLOCK + columns)
    while tl.atomic_cas(lock_ptr, 0, 1) == 1:
        pass
    tl.debug_barrier()
    so_far = tl.load(out_ptr + columns)  # here: race
    tl.store(out_ptr + columns, so_far + row)
    tl.debug_barrier()
    tl.atomic_xchg(lock_ptr, 0, sem="release", scope="cta")  # here: race


def data():
    return torch.arange(256.0).reshape(4, 64)


def run(dev):
    lock, out = torch.zeros(1, dtype=torch.int32, device=dev), torch.zeros(64, device=dev)
    add_rows[(4,)](data().to(dev), lock, out, BLOCK=64)
    return out


def ref():
    return data().sum(0)
