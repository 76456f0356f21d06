"""A hash in unsigned numbers of 32 bits, which wrap round as they are meant to."""

import torch
import triton
import triton.language as tl

FINDS = {}
PASSES = ["interpreter", "cuda:75", "cuda:90", "hip:gfx90a", "hip:gfx942"]


@triton.jit
def mix(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    h = tl.load(x_ptr + offsets).to(tl.uint32, bitcast=True)
    h = (h ^ (h >> 16)) * 0x85EBCA6B
    h = (h ^ (h >> 13)) * 0xC2B2AE35
    tl.store(out_ptr + offsets, (h ^ (h >> 16)).to(tl.int32, bitcast=True))


def data():
    return torch.arange(-(2**31), 2**31, 2**26, dtype=torch.int64).to(torch.int32)


def run(dev):
    x = data().to(dev)
    out = torch.empty_like(x)
    mix[(1,)](x, out, BLOCK=64)
    return out


def ref():
    h = data().long() & 0xFFFFFFFF
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        h ^= h >> shift
        h = ((h & 0xFFFF) * factor + ((((h >> 16) * factor) & 0xFFFF) << 16)) & 0xFFFFFFFF
    h ^= h >> 16
    return torch.where(h >= 2**31, h - 2**32, h).int()
