"""An optimiser's step whose second moments are subnormal: their roots are not, unless they are taken of 0."""

import torch
import triton
import triton.language as tl

FINDS = {"flushed-root": ["cuda:75", "cuda:90", "hip:gfx942", "hip:gfx1100"]}
PASSES = ["cuda:90", "hip:gfx942", "interpreter"]
LACKS = {"flushed-root": ["interpreter"]}


@triton.jit
def step(gradient_ptr, moment_ptr, out_ptr, eps, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    root = tl.sqrt(tl.load(moment_ptr + i))  # here: flushed-root
    tl.store(out_ptr + i, tl.load(gradient_ptr + i) / (root + eps))


def data():
    gradient = torch.linspace(1e-20, 1e-19, 64)
    return gradient, (gradient.double() ** 2).float()


def run(dev):
    gradient, moment = (t.to(dev) for t in data())
    out = torch.empty_like(gradient)
    step[(1,)](gradient, moment, out, 1e-24, BLOCK=64)
    return out


def ref():
    gradient, moment = (t.double() for t in data())
    return (gradient / (moment.sqrt() + 1e-24)).float()
