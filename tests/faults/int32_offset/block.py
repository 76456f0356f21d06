"""A block of rows times their stride."""

import torch
import triton
import triton.language as tl

FINDS = {"int-overflow": ["*"], "wrong-value": ["*"]}
PASSES = ["hip:gfx942"]


@triton.jit
def offsets_of(out_ptr, stride, BLOCK: tl.constexpr):
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + rows, (rows * stride).to(tl.int64))  # here: int-overflow, wrong-value


def run(dev):
    out = torch.empty(64, dtype=torch.int64, device=dev)
    offsets_of[(2,)](out, 50_000_000, BLOCK=32)
    return out


def ref():
    return torch.arange(64, dtype=torch.int64) * 50_000_000
