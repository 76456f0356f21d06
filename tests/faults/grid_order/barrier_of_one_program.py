"""A barrier of a program"s threads is taken for one of all programs."""

import torch
import triton
import triton.language as tl

FINDS = {"race": ["*"]}


@triton.jit
def norm(x_ptr, part_ptr, out_ptr, P: tl.constexpr, B: tl.constexpr):
    p = tl.program_id(0)
    x = tl.load(x_ptr + p * B + tl.arange(0, B))
    tl.store(part_ptr + p, tl.max(x, 0))
    tl.debug_barrier()
    m = tl.max(tl.load(part_ptr + tl.arange(0, P)), 0)  # here: race
    tl.store(out_ptr + p * B + tl.arange(0, B), x - m)


def data():
    torch.manual_seed(1)
    return torch.rand(64) + 1


def run(dev):
    x = data().to(dev)
    part = torch.zeros(4, device=dev)
    out = torch.empty_like(x)
    norm[(4,)](x, part, out, P=4, B=16)
    return out


def ref():
    return data() - data().max()
