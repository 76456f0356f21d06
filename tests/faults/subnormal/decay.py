"""A decay and its inverse, each a power of 2 of its own: their product is 1 while neither is flushed."""

import torch
import triton
import triton.language as tl

FINDS = {"flushed-exp2": ["cuda:75", "cuda:90", "hip:gfx942", "hip:gfx1100"]}
PASSES = ["cuda:90", "hip:gfx942", "interpreter"]
LACKS = {"flushed-exp2": ["interpreter"]}


@triton.jit
def undecayed(g_ptr, x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    g = tl.load(g_ptr + i)
    kept = tl.load(x_ptr + i) * tl.exp2(-g)  # here: flushed-exp2
    tl.store(out_ptr + i, kept * tl.exp2(0.5 * g) * tl.exp2(0.5 * g))


def data():
    return torch.linspace(100.0, 130.0, 64), torch.full((64,), 8.0)


def run(dev):
    g, x = (t.to(dev) for t in data())
    out = torch.empty_like(x)
    undecayed[(1,)](g, x, out, BLOCK=64)
    return out


def ref():
    g, x = (t.double() for t in data())
    return (x * torch.exp2(-g).float() * torch.exp2(g)).float()
