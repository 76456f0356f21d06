"""A persistent loop steps by the multiprocessors, and fewer programs are launched."""

import torch
import triton
import triton.language as tl

FINDS = {"wrong-value": ["*"]}


@triton.jit
def copy(x_ptr, out_ptr, blocks, SMS: tl.constexpr, B: tl.constexpr):
    for b in range(tl.program_id(0), blocks, SMS):
        o = b * B + tl.arange(0, B)
        tl.store(out_ptr + o, 2 * tl.load(x_ptr + o))


def data():
    return torch.arange(160.0)


def run(dev):
    x = data().to(dev)
    out = torch.zeros_like(x)
    copy[(4,)](x, out, 10, SMS=8, B=16)
    return out


def ref():
    return 2 * data()
