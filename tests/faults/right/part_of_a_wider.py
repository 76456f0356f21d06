"""An output that is some columns of a wider matrix, every second row of it: all stores and atomics keep to these."""

import torch
import triton
import triton.language as tl

FINDS = {}
PASSES = ["cuda:90", "hip:gfx942", "interpreter"]


@triton.jit
def double(x_ptr, out_ptr, counts_ptr, stride_row, stride_column, N, BLOCK: tl.constexpr):
    row, columns = tl.program_id(0).to(tl.int64), tl.arange(0, BLOCK)
    at = row * stride_row + columns * stride_column
    mask = columns < N
    x = tl.load(x_ptr + row * N + columns, mask=mask)
    tl.store(out_ptr + at, x * 2, mask=mask)
    tl.atomic_add(counts_ptr + at, 1, mask=mask)


def data():
    return torch.arange(48.0).reshape(4, 12)


def run(dev):
    out = torch.zeros(8, 40, device=dev)[::2, 3:39:3]
    counts = torch.zeros(8, 40, dtype=torch.int32, device=dev)[::2, 3:39:3]
    double[(4,)](data().to(dev), out, counts, *out.stride(), 12, BLOCK=16)
    return out, counts


def ref():
    return data() * 2, torch.ones(4, 12, dtype=torch.int32)
