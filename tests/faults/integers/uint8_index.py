"""An index that is kept in eight bits: the one after 255 is 0."""

import torch
import triton
import triton.language as tl

FINDS = {"wrong-value": ["*"]}
PASSES = ["cuda:90", "hip:gfx942"]


@triton.jit
def next_entry(index_ptr, table_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    index = tl.load(index_ptr + offsets) + tl.full((BLOCK,), 1, tl.uint8)
    tl.store(out_ptr + offsets, tl.load(table_ptr + index))  # here: wrong-value


def data():
    return torch.arange(192, 256).to(torch.uint8), torch.arange(300).float()


def run(dev):
    index, table = (t.to(dev) for t in data())
    out = torch.empty(64, device=dev)
    next_entry[(1,)](index, table, out, BLOCK=64)
    return out


def ref():
    return torch.arange(193, 257).float()
