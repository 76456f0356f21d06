"""Liger-Kernel 0.8.5: the gradient of `LigerFusedGateUpSiLUMulFunction` has two dimensions where its input had three.

`swiglu_fused_gate_up_backward` flattens its input to (rows, 2 * size) and returns the gradient so; the forward pass
gives its output the shape of the input back. Needs liger-kernel and a GPU.
"""

import torch
from liger_kernel.ops import LigerFusedGateUpSiLUMulFunction

x = torch.randn(4, 16, 256, device="cuda", dtype=torch.bfloat16, requires_grad=True)
LigerFusedGateUpSiLUMulFunction.apply(x).sum().backward()
print("the gradient's shape is", tuple(x.grad.shape))
