"""Triton's own e4b15: refused by AMD."""

import torch
import triton
import triton.language as tl

FINDS = {"float8-type": ["hip:gfx942", "hip:gfx1201"]}
PASSES = ["cuda:80", "interpreter"]


@triton.jit
def round_trip(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets).to(tl.float8e4b15)  # here: float8-type
    tl.store(out_ptr + offsets, x.to(tl.float16))


def data():
    return (torch.arange(-16, 16) / 16).half()


def run(dev):
    out = torch.empty(32, dtype=torch.float16, device=dev)
    round_trip[(1,)](data().to(dev), out, BLOCK=32)
    return out


def ref():
    return data()
