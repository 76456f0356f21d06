"""The wrapper makes contiguous what it sorted itself; its inputs it takes as they are described, and they are whole."""

import torch
import triton
import triton.language as tl

FINDS = {}
PASSES = ["cuda:90", "hip:gfx942", "interpreter"]


@triton.jit
def gathered(x_ptr, order_ptr, out_ptr, N: tl.constexpr):
    columns, row = tl.arange(0, N), tl.program_id(0)
    tl.store(out_ptr + row * N + columns, tl.load(x_ptr + tl.load(order_ptr + row) * N + columns))


def data():
    torch.manual_seed(0)
    return torch.randn(6, 16), torch.randn(6)


def run(dev):
    x, key = (t.to(dev) for t in data())
    order = torch.stack([key.argsort(), key.argsort(descending=True)], 1)[:, 0].contiguous()
    out = torch.empty_like(x)
    gathered[(6,)](x, order, out, N=16)
    return out


def ref():
    x, key = data()
    return x[key.argsort()]
