"""One batch more than the second axis of a grid takes."""

import torch
import triton
import triton.language as tl

FINDS = {"grid-limit": ["cuda:75", "cuda:90"]}
PASSES = ["interpreter"]
BATCH = 65536


@triton.jit
def increment(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets) + 1)


def data():
    return torch.arange(BATCH * 2, dtype=torch.int32)


def run(dev):
    x = data().to(dev)
    out = torch.empty_like(x)
    increment[(1, BATCH)](x, out, BLOCK=2)  # here: grid-limit
    return out


def ref():
    return data() + 1
