"""The last program sums the parts; the counter that tells which is last is kept, and not put back to 0."""

import functools

import torch
import triton
import triton.language as tl

FINDS = {"kept-state": ["*"]}
LACKS = {"race": ["*"], "undefined-value": ["*"]}


@triton.jit
def total(x_ptr, parts_ptr, done_ptr, out_ptr, PARTS: tl.constexpr, BLOCK: tl.constexpr):  # here: kept-state
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(parts_ptr + tl.program_id(0), tl.sum(tl.load(x_ptr + offsets)))
    tl.debug_barrier()
    if tl.atomic_add(done_ptr, 1) == PARTS - 1:
        tl.debug_barrier()
        tl.store(out_ptr, tl.sum(tl.load(parts_ptr + tl.arange(0, PARTS))))


@functools.cache
def counter(dev):
    return torch.zeros(1, dtype=torch.int32, device=dev)


def data():
    return torch.arange(64.0)


def run(dev):
    parts, out = torch.empty(4, device=dev), torch.zeros(1, device=dev)
    total[(4,)](data().to(dev), parts, counter(dev), out, PARTS=4, BLOCK=16)
    return out


def ref():
    return data().sum().reshape(1)
