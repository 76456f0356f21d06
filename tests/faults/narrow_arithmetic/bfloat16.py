"""Addition, comparison and sum of bfloat16: right everywhere, and in the interpreter too."""

import torch
import triton
import triton.language as tl

FINDS = {"half-accumulator": ["cuda:90", "hip:gfx942"]}
PASSES = ["cuda:90", "hip:gfx942", "interpreter"]


@triton.jit
def three(x_ptr, y_ptr, sum_ptr, less_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x, y = tl.load(x_ptr + offsets), tl.load(y_ptr + offsets)
    tl.store(x_ptr + offsets, x + y)
    tl.store(sum_ptr, tl.sum(y, 0))  # here: half-accumulator
    tl.store(less_ptr + offsets, (x < y).to(tl.int32))


def data():
    return torch.tensor([2.5, -5.0, 1.0, 0.0]).bfloat16(), torch.tensor([2.0, -2.0, 3.0, 8.0]).bfloat16()


def run(dev):
    x, y = (t.to(dev).clone() for t in data())
    total = torch.empty(1, device=dev)
    less = torch.empty(4, dtype=torch.int32, device=dev)
    three[(1,)](x, y, total, less, BLOCK=4)
    return [x.float(), total, less]


def ref():
    x, y = data()
    return [(x + y).float(), y.float().sum().reshape(1), (x < y).int()]
