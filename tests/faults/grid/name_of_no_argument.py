"""The grid asks for a block's size by a name that no argument has."""

import torch
import triton
import triton.language as tl

FINDS = {"launch-error": ["cuda:90", "hip:gfx942", "interpreter"]}


@triton.jit
def double(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) * 2, mask=mask)


def data():
    return torch.linspace(-1, 1, 100)


def run(dev):
    x = data().to(dev)
    out = torch.empty_like(x)
    double[lambda meta: (triton.cdiv(100, meta["BLOCK_SIZE"]),)](x, out, 100, BLOCK=32)  # here: launch-error
    return out


def ref():
    return data() * 2
