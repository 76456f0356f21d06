"""64 warps: 2,048 threads on NVIDIA too."""

import torch
import triton
import triton.language as tl

FINDS = {"threads": ["cuda:90", "hip:gfx942"]}
PASSES = ["interpreter"]


@triton.jit
def copy(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets))


def data():
    return torch.arange(4096, dtype=torch.int32)


def run(dev):
    x = data().to(dev)
    out = torch.empty_like(x)
    copy[(1,)](x, out, BLOCK=4096, num_warps=64)  # here: threads
    return out


def ref():
    return data()
