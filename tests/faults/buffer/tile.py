"""A tile of 128 × 512 float32."""

import torch
import triton
import triton.language as tl

FINDS = {"buffer": ["npu:Ascend910B3"]}
PASSES = ["cuda:90", "interpreter"]


@triton.jit
def scale_columns(x_ptr, scale_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr):
    m, n = tl.arange(0, M), tl.arange(0, N)
    at = m[:, None] * N + n[None, :]
    tl.store(out_ptr + at, tl.load(x_ptr + at) * tl.load(scale_ptr + n)[None, :])


def data():
    torch.manual_seed(26)
    return torch.randn(128, 512), torch.randn(512)


def run(dev):
    x, scale = (t.to(dev) for t in data())
    out = torch.empty_like(x)
    scale_columns[(1,)](x, scale, out, M=128, N=512, num_warps=8)
    return out


def ref():
    x, scale = data()
    return x * scale
