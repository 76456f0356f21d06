"""Places are taken from a counter: the elements come in the order of the programs."""

import torch
import triton
import triton.language as tl

FINDS = {"atomic-order": ["*"], "race": ["*"]}


@triton.jit
def keep_positive(x_ptr, count_ptr, out_ptr, BLOCK: tl.constexpr):
    x = tl.load(x_ptr + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK))
    kept = (x > 0).to(tl.int32)
    first = tl.atomic_add(count_ptr, tl.sum(kept, 0))  # here: atomic-order
    tl.store(out_ptr + first + tl.cumsum(kept, 0) - 1, x, mask=x > 0)  # here: race


def data():
    return torch.randn(128)


def run(dev):
    count, out = torch.zeros(1, dtype=torch.int32, device=dev), torch.zeros(128, device=dev)
    keep_positive[(4,)](data().to(dev), count, out, BLOCK=32)
    return out


def ref():
    x = data()
    kept = x[x > 0]
    return torch.cat([kept, torch.zeros(128 - len(kept))])
