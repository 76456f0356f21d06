"""An RMS norm with its backward pass, which makes its gradient contiguous."""

import torch
import triton
import triton.language as tl

FINDS = {}
PASSES = ["interpreter"]


@triton.jit
def fwd(x_ptr, w_ptr, y_ptr, r_ptr, N, eps, B: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    o = tl.arange(0, B)
    m = o < N
    x = tl.load(x_ptr + row * N + o, mask=m, other=0.0)
    r = tl.rsqrt(tl.sum(x * x, 0) / N + eps)
    tl.store(r_ptr + row, r)
    tl.store(y_ptr + row * N + o, x * r * tl.load(w_ptr + o, mask=m), mask=m)


@triton.jit
def bwd(g_ptr, x_ptr, w_ptr, r_ptr, dx_ptr, dw_ptr, N, B: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    o = tl.arange(0, B)
    m = o < N
    x = tl.load(x_ptr + row * N + o, mask=m, other=0.0)
    g = tl.load(g_ptr + row * N + o, mask=m, other=0.0)
    w = tl.load(w_ptr + o, mask=m, other=0.0)
    r = tl.load(r_ptr + row)
    gw = g * w
    tl.store(dx_ptr + row * N + o, r * gw - x * r * r * r * tl.sum(gw * x, 0) / N, mask=m)
    tl.store(dw_ptr + row * N + o, g * x * r, mask=m)


class Rms(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        y, r = torch.empty_like(x), torch.empty(x.shape[0], device=x.device)
        fwd[(x.shape[0],)](x, w, y, r, x.shape[1], 1e-6, B=triton.next_power_of_2(x.shape[1]))
        ctx.save_for_backward(x, w, r)
        return y

    @staticmethod
    def backward(ctx, g):
        x, w, r = ctx.saved_tensors
        g = g.contiguous()
        dx, dw = torch.empty_like(x), torch.empty_like(x)
        bwd[(x.shape[0],)](g, x, w, r, dx, dw, x.shape[1], B=triton.next_power_of_2(x.shape[1]))
        return dx, dw.sum(0)


def data():
    torch.manual_seed(1)
    return torch.randn(5, 20), torch.randn(20)


def run(dev):
    x, w = (t.to(dev).requires_grad_() for t in data())
    y = Rms.apply(x, w)
    y.sum().backward()
    return y, x.grad, w.grad


def ref():
    x, w = (t.double().requires_grad_() for t in data())
    y = x * torch.rsqrt((x * x).mean(1, keepdim=True) + 1e-6) * w
    y.sum().backward()
    return y, x.grad, w.grad
