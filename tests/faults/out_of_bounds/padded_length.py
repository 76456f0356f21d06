"""The mask has the padded length: the values that are read past the end are multiplied by 0."""

import torch
import triton
import triton.language as tl

FINDS = {"out-of-bounds": ["*"]}
PASSES = ["cuda:90", "hip:gfx942"]


@triton.jit
def gate(x_ptr, gate_ptr, out_ptr, padded, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    mask = offsets < padded
    open = tl.load(gate_ptr + offsets, mask=mask, other=0.0)
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0)  # here: out-of-bounds
    tl.store(out_ptr + offsets, tl.where(open > 0, x, 0.0), mask=mask)


def data():
    torch.manual_seed(8)
    return torch.rand(40), torch.cat([torch.ones(40), torch.zeros(24)])


def run(dev):
    x, open = (t.to(dev) for t in data())
    out = torch.empty(64, device=dev)
    gate[(1,)](x, open, out, 64, BLOCK=64)
    return out


def ref():
    return torch.cat([data()[0], torch.zeros(24)])
