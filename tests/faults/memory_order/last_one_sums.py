"""The last program to arrive reads what others stored, with a relaxed counter."""

import torch
import triton
import triton.language as tl

FINDS = {"race": ["*"]}


@triton.jit
def total(x_ptr, part_ptr, count_ptr, out_ptr, PROGRAMS: tl.constexpr, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    tl.store(part_ptr + pid, tl.sum(tl.load(x_ptr + pid * BLOCK + tl.arange(0, BLOCK)), 0))
    if tl.atomic_add(count_ptr, 1, sem="relaxed") == PROGRAMS - 1:
        tl.store(out_ptr, tl.sum(tl.load(part_ptr + tl.arange(0, PROGRAMS)), 0))


def data():
    return torch.arange(128, dtype=torch.float32)


def run(dev):
    part = torch.empty(4, device=dev)
    count = torch.zeros(1, dtype=torch.int32, device=dev)
    out = torch.empty(1, device=dev)
    total[(4,)](data().to(dev), part, count, out, PROGRAMS=4, BLOCK=32)
    return out


def ref():
    return data().sum().reshape(1)
