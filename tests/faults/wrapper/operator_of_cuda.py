"""The wrapper is an operator of torch's that is registered for CUDA alone."""

import torch
import triton
import triton.language as tl

FINDS = {"launch-error": ["interpreter"]}
PASSES = ["cuda:90", "hip:gfx942"]


@triton.jit
def double(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) * 2, mask=mask)


@torch.library.custom_op("portability_faults::twice", mutates_args=(), device_types="cuda")
def twice(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    double[(1,)](x, out, x.numel(), BLOCK=64)
    return out


def data():
    return torch.linspace(-1, 1, 50)


def run(dev):
    return twice(data().to(dev))  # here: launch-error


def ref():
    return data() * 2
