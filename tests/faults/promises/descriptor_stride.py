"""A descriptor of rows that are no multiple of 16 bytes apart."""

import torch
import triton
import triton.language as tl

FINDS = {"descriptor-alignment": ["cuda:90"]}
PASSES = ["interpreter"]


@triton.jit
def copy(x_ptr, out_ptr, M, N, BLOCK: tl.constexpr):
    x = tl.make_tensor_descriptor(x_ptr, [M, N], [N, 1], [BLOCK, BLOCK])
    out = tl.make_tensor_descriptor(out_ptr, [M, N], [N, 1], [BLOCK, BLOCK])
    out.store([0, 0], x.load([0, 0]))


def data():
    torch.manual_seed(12)
    return torch.randn(13, 13)


def run(dev):
    triton.set_allocator(lambda size, _alignment, _stream: torch.empty(size, dtype=torch.int8, device=dev))
    x = data().to(dev)
    out = torch.empty_like(x)
    copy[(1,)](x, out, 13, 13, BLOCK=16)
    return out


def ref():
    return data()
