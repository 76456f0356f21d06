"""A heuristic that calls every size a multiple of the block leaves the mask out."""

import torch
import triton
import triton.language as tl

FINDS = {"out-of-bounds": ["*"]}


@triton.heuristics({"EVEN": lambda args: args["n"] >= args["BLOCK"]})
@triton.jit
def scale(x_ptr, out_ptr, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if EVEN:
        tl.store(out_ptr + offsets, tl.load(x_ptr + offsets) * 3)  # here: out-of-bounds
    else:
        tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=offsets < n) * 3, mask=offsets < n)


def data():
    torch.manual_seed(6)
    return torch.randn(200)


def run(dev):
    x = data().to(dev)
    out = torch.empty_like(x)
    scale[(2,)](x, out, 200, BLOCK=128)
    return out


def ref():
    return data() * 3
