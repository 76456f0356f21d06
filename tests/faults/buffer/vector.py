"""One block of 65,536 float32: more than an NPU's core can load."""

import torch
import triton
import triton.language as tl

FINDS = {"buffer": ["npu:Ascend910B3"]}
PASSES = ["cuda:90", "interpreter"]


@triton.jit
def swish(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0)
    tl.store(out_ptr + offsets, x / (1.0 + tl.exp(-x)), mask=mask)


def data():
    torch.manual_seed(3)
    return torch.randn(48000)


def run(dev):
    x = data().to(dev)
    out = torch.empty_like(x)
    swish[(1,)](x, out, x.numel(), BLOCK=65536, num_warps=16)
    return out


def ref():
    return torch.nn.functional.silu(data())
