"""A whole row of 100,000 elements in one block."""

import torch
import triton
import triton.language as tl

FINDS = {"buffer": ["npu:Ascend910B3"]}
PASSES = ["hip:gfx942", "interpreter"]


@triton.jit
def mean(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    row = tl.program_id(0).to(tl.int64)
    x = tl.load(x_ptr + row * n + offsets, mask=offsets < n, other=0.0).to(tl.float32)
    tl.store(out_ptr + row, tl.sum(x, 0) / n)


def data():
    torch.manual_seed(27)
    return torch.rand(2, 100_000).half()


def run(dev):
    out = torch.empty(2, device=dev)
    mean[(2,)](data().to(dev), out, 100_000, BLOCK=131072, num_warps=16)
    return out


def ref():
    return data().float().mean(1)
