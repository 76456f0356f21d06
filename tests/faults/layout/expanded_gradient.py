"""A backward pass that reads its gradient as contiguous: that of a sum has one element."""

import torch
import triton
import triton.language as tl

FINDS = {"out-of-bounds": ["*"], "wrong-value": ["*"]}
PASSES = ["cuda:90"]


@triton.jit
def mul(x_ptr, y_ptr, out_ptr, n, B: tl.constexpr):
    o = tl.program_id(0) * B + tl.arange(0, B)
    m = o < n
    product = tl.load(x_ptr + o, mask=m) * tl.load(y_ptr + o, mask=m)  # here: out-of-bounds
    tl.store(out_ptr + o, product, mask=m)  # here: wrong-value


def launch(x, y):
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    mul[(triton.cdiv(x.numel(), 16),)](x, y, out, x.numel(), B=16)
    return out


class Mul(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return launch(x, y)

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return launch(g, y), launch(g, x)


def data():
    torch.manual_seed(1)
    return torch.randn(50), torch.randn(50)


def run(dev):
    x, y = (t.to(dev).requires_grad_() for t in data())
    Mul.apply(x, y).sum().backward()
    return x.grad, y.grad


def ref():
    x, y = data()
    return y, x
