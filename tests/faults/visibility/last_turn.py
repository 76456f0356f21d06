"""A loop reads by other lanes what its last turn stored."""

import torch
import triton
import triton.language as tl

FINDS = {"missing-barrier": ["*"]}


@triton.jit
def prefix(x_ptr, out_ptr, T: tl.constexpr, B: tl.constexpr):
    o = tl.arange(0, B)
    tl.store(out_ptr + o, tl.load(x_ptr + o))
    for t in tl.range(1, T, num_stages=3):
        before = tl.load(out_ptr + (t - 1) * B + (B - 1 - o))  # here: missing-barrier
        tl.store(out_ptr + t * B + o, before + tl.load(x_ptr + t * B + o))


def data():
    return torch.arange(64.0).reshape(4, 16)


def run(dev):
    x = data().to(dev)
    out = torch.empty_like(x)
    prefix[(1,)](x, out, T=4, B=16)
    return out


def ref():
    x, rows = data(), []
    last = x[0]
    rows.append(last)
    for t in range(1, 4):
        last = last.flip(0) + x[t]
        rows.append(last)
    return torch.stack(rows)
