"""A program waits for a flag by plain loads."""

import torch
import triton
import triton.language as tl

FINDS = {"race": ["*"], "TP208": ["*"]}


@triton.jit
def pass_on(x_ptr, flag_ptr, out_ptr):
    pid = tl.program_id(0)
    if pid == 0:
        tl.store(out_ptr, tl.load(x_ptr) * 2)
        tl.store(flag_ptr, 1)
    else:
        while tl.load(flag_ptr) == 0:
            pass
        tl.store(out_ptr + 1, tl.load(out_ptr) + 1)


def data():
    return torch.tensor([3.0])


def run(dev):
    flag = torch.zeros(1, dtype=torch.int32, device=dev)
    out = torch.zeros(2, device=dev)
    pass_on[(2,)](data().to(dev), flag, out)
    return out


def ref():
    return torch.tensor([6.0, 7.0])
