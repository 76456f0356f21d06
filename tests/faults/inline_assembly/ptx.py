"""PTX, with no branch for other vendors."""

import torch
import triton
import triton.language as tl

FINDS = {"inline-assembly": ["hip:gfx942", "hip:gfx1201"], "TP104": ["hip:gfx942"]}
PASSES = ["cuda:75", "cuda:90"]


@triton.jit
def reciprocal(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask, other=1.0)
    code: tl.constexpr = "rcp.approx.ftz.f32 $0, $1;"
    y = tl.inline_asm_elementwise(code, "=f,f", [x], tl.float32, True, 1)  # here: TP104, inline-assembly
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
