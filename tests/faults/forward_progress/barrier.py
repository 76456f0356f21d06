"""A barrier of the whole grid: right only if every program is resident at once."""

import torch
import triton
import triton.language as tl

FINDS = {"timeout": ["*"], "TP208": ["*"]}
PASSES = ["cuda:90", "hip:gfx942"]


@triton.jit
def meet(count_ptr, out_ptr, N: tl.constexpr):
    tl.atomic_add(count_ptr, 1, sem="release")
    while tl.atomic_add(count_ptr, 0, sem="acquire") < N:  # here: TP208, timeout
        pass
    tl.store(out_ptr + tl.program_id(0), tl.atomic_add(count_ptr, 0))


def run(dev):
    count = torch.zeros(1, dtype=torch.int32, device=dev)
    out = torch.zeros(4, dtype=torch.int32, device=dev)
    meet[(4,)](count, out, N=4)
    return out


def ref():
    return torch.full((4,), 4, dtype=torch.int32)
