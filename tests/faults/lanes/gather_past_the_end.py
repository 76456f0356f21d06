"""An index that names no lane of the block that is gathered from."""

import torch
import triton
import triton.language as tl

FINDS = {"gather-index": ["*"], "undefined-lanes": ["*"], "wrong-value": ["*"]}
PASSES = ["cuda:90", "hip:gfx942"]


@triton.jit
def pick(x_ptr, i_ptr, out_ptr, B: tl.constexpr):
    o = tl.arange(0, B)
    x = tl.load(x_ptr + o)
    i = tl.load(i_ptr + o)
    tl.store(out_ptr + o, tl.gather(x, i, 0))  # here: gather-index, undefined-lanes, wrong-value


def data():
    return torch.arange(16.0), torch.tensor([0, 3, 16, -1] * 4, dtype=torch.int32)


def run(dev):
    x, i = (t.to(dev) for t in data())
    out = torch.empty_like(x)
    pick[(1,)](x, i, out, B=16)
    return out


def ref():
    x, i = data()
    return torch.where((i < 0) | (i > 15), 0.0, x[i.long().clamp(0, 15)])
