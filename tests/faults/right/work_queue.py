"""Programs draw their tiles from a counter: who does which does not show."""

import torch
import triton
import triton.language as tl

FINDS = {}
PASSES = ["interpreter"]


@triton.jit
def work(x_ptr, out_ptr, next_ptr, tiles, B: tl.constexpr):
    t = tl.atomic_add(next_ptr, 1)
    while t < tiles:
        o = t * B + tl.arange(0, B)
        tl.store(out_ptr + o, 2 * tl.load(x_ptr + o))
        t = tl.atomic_add(next_ptr, 1)


def data():
    return torch.arange(160.0)


def run(dev):
    x = data().to(dev)
    out, n = torch.empty_like(x), torch.zeros(1, dtype=torch.int32, device=dev)
    work[(3,)](x, out, n, 10, B=16)
    return out


def ref():
    return 2 * data()
