"""One row, expanded over the batch: its rows lie in one place."""

import torch
import triton
import triton.language as tl

FINDS = {"out-of-bounds": ["*"]}
PASSES = ["cuda:90"]


@triton.jit
def double(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    row = tl.program_id(0).to(tl.int64)
    mask = offsets < n
    x = tl.load(x_ptr + row * n + offsets, mask=mask)  # here: out-of-bounds
    tl.store(out_ptr + row * n + offsets, x * 2, mask=mask)


def data():
    return torch.arange(10, dtype=torch.float32).expand(4, 10)


def run(dev):
    x = data().to(dev)
    out = torch.empty(4, 10, device=dev)
    double[(4,)](x, out, 10, BLOCK=16)
    return out


def ref():
    return data() * 2
