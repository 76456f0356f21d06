"""The row of an element of a triangle by a square root that may be a little too small."""

import torch
import triton
import triton.language as tl

FINDS = {"approximate-root": ["cuda:90", "hip:gfx942"]}
PASSES = ["interpreter", "cuda:90", "hip:gfx942"]
LACKS = {"approximate-root": ["interpreter"]}


@triton.jit
def rows(out_ptr, n, B: tl.constexpr):
    k = tl.program_id(0) * B + tl.arange(0, B)
    row = ((tl.sqrt((8 * k + 1).to(tl.float32)) - 1) / 2).to(tl.int32)  # here: approximate-root
    tl.store(out_ptr + k, row, mask=k < n)


def run(dev):
    out = torch.empty(210, dtype=torch.int32, device=dev)
    rows[(4,)](out, 210, B=64)
    return out


def ref():
    return torch.repeat_interleave(torch.arange(20), torch.arange(1, 21)).int()
