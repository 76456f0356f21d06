"""An integer quotient of a negative number: down as a constant, toward zero at run time."""

import torch
import triton
import triton.language as tl

FINDS = {"wrong-value": ["*"], "mixed-signs": ["*"]}


@triton.jit
def halves(shift, out_ptr, SHIFT: tl.constexpr):
    tl.store(out_ptr, SHIFT // 2)
    tl.store(out_ptr + 1, shift // 2)  # here: mixed-signs


def run(dev):
    out = torch.zeros(2, dtype=torch.int32, device=dev)
    halves[(1,)](-7, out, SHIFT=-7)
    return out[1:] - out[:1]


def ref():
    return torch.zeros(1, dtype=torch.int32)
