"""The last program sums the parts of all; who that is, programs count by atomics that hold within one alone."""

import torch
import triton
import triton.language as tl

FINDS = {"race": ["*"]}


@triton.jit
def total(x_ptr, parts_ptr, done_ptr, out_ptr, n, PARTS: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(parts_ptr + tl.program_id(0), tl.sum(tl.load(x_ptr + offsets, mask=offsets < n, other=0.0)))
    tl.debug_barrier()
    if tl.atomic_add(done_ptr, 1, scope="cta") == PARTS - 1:  # here: race
        tl.debug_barrier()
        tl.store(out_ptr, tl.sum(tl.load(parts_ptr + tl.arange(0, PARTS))))  # here: race


def data():
    return torch.linspace(-1, 2, 1000)


def run(dev):
    parts, out = torch.empty(8, device=dev), torch.empty(1, device=dev)
    done = torch.zeros(1, dtype=torch.int32, device=dev)
    total[(8,)](data().to(dev), parts, done, out, 1000, PARTS=8, BLOCK=128)
    return out


def ref():
    return data().sum().reshape(1)
