"""What a kernel updates in place is set to zero between configurations, and the last call sees that."""

import torch
import triton
import triton.language as tl

FINDS = {"autotune-side-effect": ["*"]}


@triton.autotune(
    configs=[triton.Config({"BLOCK": 128}, num_warps=4), triton.Config({"BLOCK": 256}, num_warps=4)],
    key=["n_elements"], reset_to_zero=["x_ptr"],
)  # fmt: skip
@triton.jit
def increment(x_ptr, n_elements, BLOCK: tl.constexpr):  # here: autotune-side-effect
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n_elements)
    tl.store(x_ptr + offsets, x + 1.0, mask=offsets < n_elements)


def data():
    return torch.randn(1000)


def run(dev):
    x = data().to(dev).clone()
    increment[lambda meta: (triton.cdiv(1000, meta["BLOCK"]),)](x, 1000)
    return x


def ref():
    return data() + 1
