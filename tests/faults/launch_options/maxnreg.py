"""A launch option of NVIDIA alone, given in a tuned configuration."""

import torch
import triton
import triton.language as tl

FINDS = {"unknown-option": ["hip:gfx942", "hip:gfx1201"]}
PASSES = ["cuda:90", "interpreter"]


@triton.autotune(
    configs=[
        triton.Config({"BLOCK": 128}, num_warps=4),
        triton.Config({"BLOCK": 256}, num_warps=8, maxnreg=64),
    ],
    key=[],
)
@triton.jit
def negate(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, -tl.load(x_ptr + offsets, mask=mask), mask=mask)


def data():
    return torch.linspace(-1, 1, 300)


def run(dev):
    x = data().to(dev)
    out = torch.empty_like(x)
    negate[lambda meta: (triton.cdiv(300, meta["BLOCK"]),)](x, out, 300)  # here: unknown-option
    return out


def ref():
    return -data()
