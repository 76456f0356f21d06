"""Two parts, of which the second is empty: its launch has no programs."""

import torch
import triton
import triton.language as tl

FINDS = {"grid-empty": ["npu:Ascend910B3"]}
PASSES = ["cuda:90", "interpreter"]


@triton.jit
def scale(x_ptr, out_ptr, n, factor, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) * factor, mask=mask)


def data():
    return torch.linspace(-1, 1, 100)


def run(dev):
    x = data().to(dev)
    out = torch.empty_like(x)
    for part, factor in ((slice(0, 100), 2.0), (slice(100, 200), 3.0)):
        n = x[part].numel()
        scale[(triton.cdiv(n, 64),)](x[part], out[part], n, factor, BLOCK=64)  # here: grid-empty
    return out


def ref():
    return data() * 2
