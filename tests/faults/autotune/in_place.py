"""A tuned kernel that works in place: tuning applies it once for each configuration."""

import torch
import triton
import triton.language as tl

FINDS = {"autotune-side-effect": ["*"]}


@triton.autotune(
    configs=[triton.Config({"BLOCK": 64}, num_warps=2), triton.Config({"BLOCK": 256}, num_warps=4)], key=["n"]
)
@triton.jit
def halve(x_ptr, n, BLOCK: tl.constexpr):  # here: autotune-side-effect
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(x_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) * 0.5, mask=mask)


def data():
    return torch.linspace(1, 2, 200)


def run(dev):
    x = data().to(dev).clone()
    halve[lambda meta: (triton.cdiv(200, meta["BLOCK"]),)](x, 200)
    return x


def ref():
    return data() / 2
