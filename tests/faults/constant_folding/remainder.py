"""The same remainder, folded by Python and computed by the target."""

import torch
import triton
import triton.language as tl

FINDS = {"wrong-value": ["*"], "mixed-signs": ["*"]}


@triton.jit
def both(x_ptr, out_ptr, A: tl.constexpr, M: tl.constexpr):
    folded: tl.constexpr = A % M
    tl.store(out_ptr, folded)
    tl.store(out_ptr + 1, tl.load(x_ptr) % M)  # here: mixed-signs


def run(dev):
    out = torch.zeros(2, device=dev)
    both[(1,)](torch.tensor([-5.0], device=dev), out, A=-5.0, M=3.0)
    return out[1:] - out[:1]


def ref():
    return torch.zeros(1)
