"""moe-ops 0.1.0: the gradient of `fused_topk_softmax` reads past a gradient that is expanded, as that of `sum()` is.

`_fused_topk_softmax_bwd` (moe_ops/fused_topk_softmax_ops.py) hands the incoming gradient to its kernel as if it were
contiguous. That of `weights.sum()` is one element with strides 0, and the kernel reads a matrix of what lies behind it.
Here other numbers lie there. Needs moe-ops and no GPU: Triton's interpreter runs it.
"""

import os

os.environ["TRITON_INTERPRET"] = "1"

import torch
from moe_ops import fused_topk_softmax, fused_topk_softmax_ops

for kernel in (
    fused_topk_softmax_ops._fused_topk_softmax_fwd_kernel_2d,
    fused_topk_softmax_ops._fused_topk_softmax_bwd_kernel_2d,
):
    kernel.configs = kernel.configs[:1]  # nothing is timed here

logits = torch.randn(64, 8, requires_grad=True)
ones = torch.cat([torch.ones(1), torch.randn(1000)])[:1].expand(64, 2)
for name, gradient in (("contiguous", ones.contiguous()), ("expanded", ones)):
    logits.grad = None
    fused_topk_softmax(logits, 2)[0].backward(gradient)  # the weights of a row add up to 1: the gradient of that is 0
    off = logits.grad.abs().max().item()
    print(f"{name} gradient: {'right' if off < 1e-5 else 'wrong values'}")
