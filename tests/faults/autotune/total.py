"""A tuned kernel that adds to its output, and is not told to reset it."""

import torch
import triton
import triton.language as tl

FINDS = {"autotune-side-effect": ["*"], "TP207": ["*"]}


@triton.autotune(
    configs=[triton.Config({"BLOCK": 64}, num_warps=2), triton.Config({"BLOCK": 128}, num_warps=4)], key=["n"]
)
@triton.jit
def total(x_ptr, out_ptr, n, BLOCK: tl.constexpr):  # here: autotune-side-effect
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=0.0)
    tl.atomic_add(out_ptr, tl.sum(x, 0))  # here: TP207


def data():
    return torch.ones(256)


def run(dev):
    out = torch.zeros(1, device=dev)
    total[lambda meta: (triton.cdiv(256, meta["BLOCK"]),)](data().to(dev), out, 256)
    return out


def ref():
    return torch.full((1,), 256.0)
