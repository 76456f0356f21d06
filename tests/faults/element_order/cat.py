"""tl.cat, which may reorder: the interpreter happens not to."""

import torch
import triton
import triton.language as tl

FINDS = {"reorders": ["cuda:90", "hip:gfx942"]}
PASSES = ["cuda:90", "hip:gfx942", "interpreter"]


@triton.jit
def twice(x_ptr, out_ptr, BLOCK: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, BLOCK))
    both = tl.cat(x, -x, can_reorder=True)  # here: reorders
    tl.store(out_ptr + tl.arange(0, 2 * BLOCK), both)


def data():
    return torch.arange(64, dtype=torch.float32)


def run(dev):
    out = torch.empty(128, device=dev)
    twice[(1,)](data().to(dev), out, BLOCK=64)
    return out


def ref():
    return torch.cat([data(), -data()])
