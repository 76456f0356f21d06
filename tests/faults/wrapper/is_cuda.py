"""The wrapper takes tensors of one vendor alone."""

import torch
import triton
import triton.language as tl

FINDS = {"launch-error": ["interpreter"]}
PASSES = ["cuda:90", "hip:gfx942"]


@triton.jit
def double(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    for block in range(tl.program_id(0), tl.cdiv(n, BLOCK), tl.num_programs(0)):
        offsets = block * BLOCK + tl.arange(0, BLOCK)
        mask = offsets < n
        tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) * 2, mask=mask)


def data():
    return torch.linspace(-1, 1, 300)


def run(dev):
    x = data().to(dev)
    assert x.is_cuda  # here: launch-error
    out, programs = torch.empty_like(x), 2
    double[(programs,)](x, out, 300, BLOCK=128)
    return out


def ref():
    return data() * 2
