"""A tuned configuration of 32 warps: wave64 targets drop it, and run another one."""

import torch
import triton
import triton.language as tl

FINDS = {"config-fails": ["hip:gfx942"]}
PASSES = ["cuda:90", "hip:gfx942", "interpreter"]


@triton.autotune(
    configs=[triton.Config({}, num_warps=8), triton.Config({}, num_warps=32)],
    key=[],
)
@triton.jit
def row_sum(x_ptr, out_ptr, n, BLOCK: tl.constexpr):  # here: config-fails
    row, offsets = tl.program_id(0).to(tl.int64), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + offsets, mask=offsets < n, other=0.0)
    tl.store(out_ptr + row, tl.sum(x, 0))


def data():
    torch.manual_seed(28)
    return torch.rand(2, 3000)


def run(dev):
    out = torch.empty(2, device=dev)
    row_sum[(2,)](data().to(dev), out, 3000, BLOCK=4096)
    return out


def ref():
    return data().sum(1)
