"""Heuristics around the tuning cannot see the block that it chose: what is even for one is not for another."""

import torch
import triton
import triton.language as tl

FINDS = {"out-of-bounds": ["*"]}
LACKS = {"autotune-side-effect": ["*"]}


@triton.heuristics({"EVEN": lambda args: args["n"] % 64 == 0})
@triton.autotune([triton.Config({"BLOCK": b}, num_warps=4) for b in (64, 128)], key=["n"])
@triton.jit
def double(x_ptr, out_ptr, n, EVEN: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if EVEN:
        tl.store(out_ptr + offsets, tl.load(x_ptr + offsets) * 2)  # here: out-of-bounds
    else:
        tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=offsets < n) * 2, mask=offsets < n)


def data():
    return torch.arange(192.0)


def run(dev):
    x = data().to(dev)
    out = torch.empty_like(x)
    double[lambda meta: (triton.cdiv(192, meta["BLOCK"]),)](x, out, 192)
    return out


def ref():
    return data() * 2
