"""Addresses from a table, of which one is not offset by its own length."""

import torch
import triton
import triton.language as tl

FINDS = {"out-of-bounds": ["*"]}


@triton.jit
def copy(table_ptr, lengths_ptr, out_ptr, BLOCK: tl.constexpr):
    which, lanes = tl.program_id(0), tl.arange(0, BLOCK)
    x_ptr = tl.load(table_ptr + which).to(tl.pointer_type(tl.float32))
    tl.store(out_ptr + which * BLOCK + lanes, tl.load(x_ptr + lanes))


def data():
    return [torch.arange(16.0), torch.arange(10.0)]


def run(dev):
    xs = [t.to(dev) for t in data()]
    table = torch.tensor([x.data_ptr() for x in xs], device=dev)
    lengths = torch.tensor([16, 10], device=dev)
    out = torch.zeros(2, 16, device=dev)
    copy[(2,)](table, lengths, out, BLOCK=16)
    return out


def ref():
    a, b = data()
    return torch.stack([a, torch.cat([b, torch.zeros(6)])])
