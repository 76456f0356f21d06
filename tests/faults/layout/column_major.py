"""The wrapper means to take any layout, and checks the wrong stride: right for its own inputs."""

import torch
import triton
import triton.language as tl

FINDS = {"wrong-value": ["*"]}
PASSES = ["cuda:90", "hip:gfx942"]


@triton.jit
def row_maximum(x_ptr, out_ptr, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * stride + offsets, mask=offsets < n, other=float("-inf"))
    tl.store(out_ptr + row, tl.max(x, 0))  # here: wrong-value


def data():
    torch.manual_seed(25)
    return torch.randn(12, 12)


def run(dev):
    x = data().to(dev)
    if x.stride(0) == 0:
        x = x.contiguous()
    out = torch.empty(12, device=dev)
    row_maximum[(12,)](x, out, x.stride(0), 12, BLOCK=16)
    return out


def ref():
    return data().amax(1)
