"""Rows on 32 warps: 2,048 threads where a warp is 64 lanes."""

import torch
import triton
import triton.language as tl

FINDS = {"threads": ["hip:gfx90a", "hip:gfx942"], "TP201": ["hip:gfx90a"]}
PASSES = ["cuda:75", "cuda:90", "hip:gfx1201", "interpreter"]


@triton.jit
def softmax(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    row, offsets = tl.program_id(0).to(tl.int64), tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + row * n + offsets, mask=mask, other=float("-inf"))
    exponentials = tl.exp(x - tl.max(x, 0))
    tl.store(out_ptr + row * n + offsets, exponentials / tl.sum(exponentials, 0), mask=mask)


def data():
    torch.manual_seed(2)
    return torch.randn(3, 5000)


def run(dev):
    x = data().to(dev)
    out = torch.empty_like(x)
    softmax[(3,)](x, out, 5000, BLOCK=8192, num_warps=32)  # here: TP201, threads
    return out


def ref():
    return torch.softmax(data(), -1)
