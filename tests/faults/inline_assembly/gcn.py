"""AMD's assembly, with no branch for other vendors."""

import torch
import triton
import triton.language as tl

FINDS = {"inline-assembly": ["cuda:75", "cuda:90"]}
PASSES = ["hip:gfx942"]


@triton.jit
def reciprocal(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask, other=1.0)
    y = tl.inline_asm_elementwise("v_rcp_f32 $0, $1", "=v,v", [x], tl.float32, True, 1)  # here: inline-assembly
    tl.store(out_ptr + offsets, y, mask=mask)


def data():
    return torch.arange(1, 101, dtype=torch.float32)


def run(dev):
    x = data().to(dev)
    out = torch.empty_like(x)
    reciprocal[(1,)](x, out, 100, BLOCK=128)
    return out


def ref():
    return 1 / data()
