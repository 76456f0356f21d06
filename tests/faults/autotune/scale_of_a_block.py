"""A scale for each block, whose size is tuned: the configuration enters the result."""

import torch
import triton
import triton.language as tl

FINDS = {"wrong-value": ["*"]}


@triton.autotune([triton.Config({"B": 16}, num_warps=1), triton.Config({"B": 64}, num_warps=1)], key=[])
@triton.jit
def quant(x_ptr, out_ptr, n, B: tl.constexpr):
    o = tl.program_id(0) * B + tl.arange(0, B)
    x = tl.load(x_ptr + o, mask=o < n, other=0.0)
    tl.store(out_ptr + o, x / tl.max(tl.abs(x), 0), mask=o < n)  # here: wrong-value


def data():
    torch.manual_seed(1)
    return torch.randn(64)


def run(dev):
    x = data().to(dev)
    out = torch.empty_like(x)
    quant[lambda c: (triton.cdiv(64, c["B"]),)](x, out, 64)
    return out


def ref():
    x = data().reshape(4, 16)
    return (x / x.abs().amax(1, keepdim=True)).reshape(-1)
