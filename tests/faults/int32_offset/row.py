"""A row's number times its stride, in 32 bits."""

import torch
import triton
import triton.language as tl

FINDS = {"int-overflow": ["*"], "wrong-value": ["*"], "TP401": ["*"]}
PASSES = ["cuda:90"]
ROWS, STRIDE = 5, 700_000_000


@triton.jit
def row_offset(out_ptr, stride):
    row = tl.program_id(0)
    tl.store(out_ptr + row, (row * stride).to(tl.int64))  # here: int-overflow, wrong-value, TP401


def run(dev):
    out = torch.empty(ROWS, dtype=torch.int64, device=dev)
    row_offset[(ROWS,)](out, STRIDE)
    return out


def ref():
    return torch.arange(ROWS, dtype=torch.int64) * STRIDE
