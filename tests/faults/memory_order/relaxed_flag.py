"""A flag that is set and read without ordering what it guards."""

import torch
import triton
import triton.language as tl

FINDS = {"race": ["*"]}


@triton.jit
def pass_on(x_ptr, flag_ptr, between_ptr, out_ptr):
    pid = tl.program_id(0)
    if pid == 0:
        tl.store(between_ptr, tl.load(x_ptr) * 2)
        tl.atomic_xchg(flag_ptr, 1, sem="relaxed")
    else:
        while tl.atomic_add(flag_ptr, 0, sem="relaxed") == 0:
            pass
        tl.store(out_ptr, tl.load(between_ptr))


def data():
    return torch.tensor([3.0])


def run(dev):
    flag = torch.zeros(1, dtype=torch.int32, device=dev)
    between, out = torch.zeros(1, device=dev), torch.zeros(1, device=dev)
    pass_on[(2,)](data().to(dev), flag, between, out)
    return out


def ref():
    return data() * 2
