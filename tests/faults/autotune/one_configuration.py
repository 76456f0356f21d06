"""One configuration's block is shorter than the row that it should hold."""

import torch
import triton
import triton.language as tl

FINDS = {"wrong-value": ["*"]}


@triton.autotune(
    configs=[triton.Config({"BLOCK": 256}, num_warps=4), triton.Config({"BLOCK": 128}, num_warps=4)], key=["n"]
)
@triton.jit
def row_sum(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + offsets, mask=offsets < n, other=0.0)
    tl.store(out_ptr + row, tl.sum(x, 0))  # here: wrong-value


def data():
    return torch.ones(3, 200)


def run(dev):
    out = torch.empty(3, device=dev)
    row_sum[(3,)](data().to(dev), out, 200)
    return out


def ref():
    return data().sum(1)
