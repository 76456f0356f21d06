"""A tuned kernel that adds to its output, and names it in reset_to_zero."""

import torch
import triton
import triton.language as tl

FINDS = {}
PASSES = ["cuda:90", "hip:gfx942", "interpreter"]


@triton.autotune(
    configs=[triton.Config({"BLOCK": 64}, num_warps=2), triton.Config({"BLOCK": 128}, num_warps=4)],
    key=[],
    reset_to_zero=["out_ptr"],
)
@triton.jit
def count(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=0)
    tl.atomic_add(out_ptr, tl.sum(x, 0))


def data():
    return torch.ones(300, dtype=torch.int32)


def run(dev):
    out = torch.zeros(1, dtype=torch.int32, device=dev)
    count[lambda meta: (triton.cdiv(300, meta["BLOCK"]),)](data().to(dev), out, 300)
    return out


def ref():
    return torch.full((1,), 300, dtype=torch.int32)
