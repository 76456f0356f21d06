"""Whether any weight is above 0, asked of powers of 2 that are hardly so."""

import torch
import triton
import triton.language as tl

FINDS = {"flushed-exp2": ["cuda:75", "cuda:90", "hip:gfx942", "hip:gfx1100"]}
PASSES = ["cuda:90", "hip:gfx942", "interpreter"]
LACKS = {"flushed-exp2": ["interpreter"]}


@triton.jit
def any_left(x_ptr, out_ptr, N: tl.constexpr):
    row, columns = tl.program_id(0), tl.arange(0, N)
    weights = tl.exp2(tl.load(x_ptr + row * N + columns))  # here: flushed-exp2
    tl.store(out_ptr + row, (tl.max(weights, 0) > 0.0).to(tl.int32))


def data():
    return torch.full((4, 64), -130.0)


def run(dev):
    out = torch.empty(4, dtype=torch.int32, device=dev)
    any_left[(4,)](data().to(dev), out, N=64)
    return out


def ref():
    return torch.ones(4, dtype=torch.int32)
