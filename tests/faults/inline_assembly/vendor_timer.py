"""A timer that one vendor has."""

import torch
import triton
import triton.language as tl

FINDS = {"TP105": ["hip:gfx942"], "inline-assembly": ["hip:gfx942"]}


@triton.jit
def stamp(out_ptr):
    tl.store(out_ptr, tl.extra.cuda.globaltimer())


def run(dev):
    out = torch.zeros(1, dtype=torch.int64, device=dev)
    stamp[(1,)](out)
    return (out > 0).int()
