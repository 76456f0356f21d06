"""Every way to a tensor on the device that run is given: by name, from another one, by a default, by a module."""

import torch
import triton
import triton.language as tl

FINDS = {}
PASSES = ["interpreter", "cuda:90", "hip:gfx942"]
LACKS = {"host-tensor": ["cuda:90", "hip:gfx942"]}


@triton.jit
def total(a_ptr, b_ptr, c_ptr, d_ptr, e_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(a_ptr + i) + tl.load(b_ptr + i) + tl.load(c_ptr + i) + tl.load(d_ptr + i) + tl.load(e_ptr + i)
    tl.store(out_ptr + i, x)


def data():
    return torch.arange(16.0)


def run(dev):
    a = data().to(dev)
    b = torch.ones(16).to(device=dev, dtype=torch.float32)
    c = a.new_tensor([1.0] * 16)
    with torch.device(dev):
        d = torch.ones(16)
    e = torch.nn.LayerNorm(16).to(dev).weight
    out = torch.empty_like(a)
    total[(1,)](a, b, c, d, e, out, BLOCK=16)
    return out


def ref():
    return data() + 4
