"""Liger-Kernel 0.8.5: softmax refuses more than 65,536 columns, and its kernels for such rows are never launched.

`_softmax_forward` takes the kernel for rows of several blocks where `n_cols > BLOCK_SIZE`, but BLOCK_SIZE comes from
`calculate_settings(n_cols)`, which is at least n_cols or raises. Needs liger-kernel and a GPU.
"""

import torch
from liger_kernel.transformers.functional import liger_softmax

x = torch.randn(8, 131072, device="cuda", dtype=torch.bfloat16)
print("the output's shape is", tuple(liger_softmax(x).shape))
