"""A descriptor whose blocks have rows of 8 bytes."""

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

FINDS = {"launch-error": ["interpreter"]}


@triton.jit
def copy(x_desc, out_ptr, B: tl.constexpr):
    x = x_desc.load([0, 0])
    i, j = tl.arange(0, B)[:, None], tl.arange(0, 4)[None, :]
    tl.store(out_ptr + i * 4 + j, x)


def data():
    return torch.arange(64.0).half().reshape(8, 8)


def run(dev):
    x = data().to(dev)
    out = torch.empty(8, 4, dtype=torch.float16, device=dev)
    copy[(1,)](TensorDescriptor.from_tensor(x, [8, 4]), out, B=8)  # here: launch-error
    return out


def ref():
    return data()[:, :4].contiguous()
