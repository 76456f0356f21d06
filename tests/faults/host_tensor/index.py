"""The wrapper makes an index and does not say where."""

import torch
import triton
import triton.language as tl

FINDS = {"host-tensor": ["cuda:75", "hip:gfx942", "npu:Ascend910B3"]}
PASSES = ["interpreter"]
LACKS = {"host-tensor": ["interpreter"]}


@triton.jit
def take(x_ptr, i_ptr, out_ptr, n, B: tl.constexpr):
    o = tl.arange(0, B)
    i = tl.load(i_ptr + o, mask=o < n, other=0)
    tl.store(out_ptr + o, tl.load(x_ptr + i, mask=o < n), mask=o < n)


def data():
    return torch.arange(20.0)


def run(dev):
    x = data().to(dev)
    out = torch.empty(7, device=dev)
    starts = torch.tensor([0, 2, 5, 7, 11, 13, 17])
    take[(1,)](x, starts, out, 7, B=8)  # here: host-tensor
    return out


def ref():
    return data()[torch.tensor([0, 2, 5, 7, 11, 13, 17])]
