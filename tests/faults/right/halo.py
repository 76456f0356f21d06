"""A blur that reads its neighbours" elements, masked at the edges."""

import torch
import triton
import triton.language as tl

FINDS = {}
PASSES = ["interpreter"]


@triton.jit
def blur(x_ptr, out_ptr, H, W, BH: tl.constexpr, BW: tl.constexpr):
    i = tl.program_id(0) * BH + tl.arange(0, BH)[:, None]
    j = tl.program_id(1) * BW + tl.arange(0, BW)[None, :]
    total = tl.zeros((BH, BW), tl.float32)
    for di in tl.static_range(-1, 2):
        for dj in tl.static_range(-1, 2):
            inside = (i + di >= 0) & (i + di < H) & (j + dj >= 0) & (j + dj < W)
            total += tl.load(x_ptr + (i + di) * W + j + dj, mask=inside, other=0.0)
    tl.store(out_ptr + i * W + j, total / 9, mask=(i < H) & (j < W))


def data():
    torch.manual_seed(1)
    return torch.randn(13, 21)


def run(dev):
    x = data().to(dev)
    out = torch.empty_like(x)
    blur[(2, 3)](x, out, 13, 21, BH=8, BW=8)
    return out


def ref():
    return torch.nn.functional.avg_pool2d(data()[None], 3, 1, 1)[0]
