"""A descriptor that is made in the kernel wants memory, and the wrapper sets no allocator."""

import torch
import triton
import triton.language as tl

FINDS = {"no-allocator": ["cuda:90"]}
PASSES = ["hip:gfx942", "interpreter"]


@triton.jit
def double(x_ptr, out_ptr, M, N, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    x = tl.make_tensor_descriptor(x_ptr, [M, N], [N, 1], [ROWS, COLUMNS])
    out = tl.make_tensor_descriptor(out_ptr, [M, N], [N, 1], [ROWS, COLUMNS])
    row = tl.program_id(0) * ROWS
    out.store([row, 0], x.load([row, 0]) * 2)


def data():
    torch.manual_seed(33)
    return torch.randn(40, 32)


def run(dev):
    x = data().to(dev)
    out = torch.empty_like(x)
    double[(3,)](x, out, 40, 32, ROWS=16, COLUMNS=32)
    return out


def ref():
    return data() * 2
