"""The kernel writes a flattened output, which is a copy where the input is not contiguous."""

import torch
import triton
import triton.language as tl

FINDS = {"wrong-value": ["*"]}


@triton.jit
def double(x_ptr, out_ptr, n_elements, BLOCK: tl.constexpr):  # here: wrong-value
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n_elements)
    tl.store(out_ptr + offsets, 2 * x, mask=offsets < n_elements)


def data():
    return torch.randn(30, 20).t()


def run(dev):
    x = data().to(dev)
    out = torch.empty_like(x)
    double[(5,)](x.contiguous(), out.flatten(), 600, BLOCK=128)
    return out


def ref():
    return 2 * data()
