"""Gradients that are added up atomically in float16."""

import torch
import triton
import triton.language as tl

FINDS = {"nondeterministic": ["*"], "atomic-emulated": ["hip:gfx1100"]}


@triton.jit
def scatter(index_ptr, x_ptr, out_ptr, WIDTH: tl.constexpr):
    row, columns = tl.program_id(0), tl.arange(0, WIDTH)
    at = tl.load(index_ptr + row)
    tl.atomic_add(out_ptr + at * WIDTH + columns, tl.load(x_ptr + row * WIDTH + columns))


def data():
    torch.manual_seed(3)
    return torch.randint(0, 4, (64,)), (torch.randn(64, 16) * 30).half()


def run(dev):
    index, x = (t.to(dev) for t in data())
    out = torch.zeros(4, 16, dtype=torch.float16, device=dev)
    scatter[(64,)](index, x, out, WIDTH=16)
    return out


def ref():
    index, x = data()
    return torch.zeros(4, 16).index_add(0, index, x.float())
