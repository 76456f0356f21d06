"""The output is some columns of a wider matrix; whole blocks are stored, over the columns beside them."""

import torch
import triton
import triton.language as tl

FINDS = {"out-of-view": ["*"]}


@triton.jit
def double(x_ptr, out_ptr, stride, rows, N, BLOCK: tl.constexpr):
    row, columns = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * N + columns, mask=columns < N, other=0.0)
    at = row * stride + columns
    tl.store(out_ptr + at, x * 2, mask=at < rows * stride - 4)  # here: out-of-view


def data():
    return torch.arange(48.0).reshape(4, 12)


def run(dev):
    whole = torch.zeros(4, 16, device=dev)
    out = whole[:, :12]
    double[(4,)](data().to(dev), out, 16, 4, 12, BLOCK=16)
    return out


def ref():
    return data() * 2
