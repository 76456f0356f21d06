"""Batch, head and row, added up before they are widened."""

import torch
import triton
import triton.language as tl

FINDS = {"int-overflow": ["*"], "wrong-value": ["*"]}
PASSES = ["cuda:90"]


@triton.jit
def offset_of(out_ptr, heads, stride_batch, stride_head):
    batch, head = tl.program_id(0), tl.program_id(1)
    offset = batch * stride_batch + head * stride_head  # here: int-overflow
    tl.store(out_ptr + batch * heads + head, offset.to(tl.int64))  # here: wrong-value


def run(dev):
    out = torch.empty(2, 3, dtype=torch.int64, device=dev)
    offset_of[(2, 3)](out, 3, 1_500_000_000, 500_000_000)
    return out


def ref():
    return torch.arange(2)[:, None] * 1_500_000_000 + torch.arange(3)[None, :] * 500_000_000
