"""A row's scale from its mean magnitude: its largest value does not fit."""

import torch
import triton
import triton.language as tl

FINDS = {"fp8-saturation": ["*"], "wrong-value": ["*"]}


@triton.jit
def quantise(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + row * n + offsets, mask=mask, other=0.0)
    scale = tl.sum(tl.abs(x), 0) / n / 448
    y = (x / scale).to(tl.float8e4nv)  # here: fp8-saturation
    tl.store(out_ptr + row * n + offsets, y.to(tl.float32) * scale, mask=mask)  # here: wrong-value


def data():
    torch.manual_seed(21)
    return torch.randn(3, 50)


def run(dev):
    out = torch.empty(3, 50, device=dev)
    quantise[(3,)](data().to(dev), out, 50, BLOCK=64)
    return out


def ref():
    x = data()
    scale = x.abs().amax(-1, keepdim=True) / 448
    return (x / scale).to(torch.float8_e4m3fn).float() * scale
