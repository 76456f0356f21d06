"""moe-ops 0.1.0: `grouped_gemm` with one offset an expert takes each expert's rows from the next one.

README: "`offsets`: `[E + 1]` or `[E]`, cumulative group ends". Where there is no TMA (NVIDIA before Hopper, AMD) the
forward kernel reads `offsets[g]` and `offsets[g + 1]` all the same, as the gradient of B does everywhere; the last
expert reads past the end. Needs moe-ops and no GPU: Triton's interpreter runs it.
"""

import os

os.environ["TRITON_INTERPRET"] = "1"

import torch
from moe_ops.grouped_gemm_ops import gmm_forward_kernel, grouped_gemm  # what `moe_ops.grouped_gemm` takes without TMA

gmm_forward_kernel.configs = gmm_forward_kernel.configs[:1]  # nothing is timed here
experts, rows, size = 3, 4, 16
a = torch.randn(experts * rows, size)
b = torch.randn(experts, size, size)
right = torch.cat([a[rows * g : rows * (g + 1)] @ b[g].T for g in range(experts)])
ends = torch.arange(experts + 1, dtype=torch.int32) * rows
for name, offsets in (("E + 1", ends), ("E", ends[1:].clone())):
    off = (grouped_gemm(a, b, offsets) - right).abs().max().item()
    print(f"[{name}] offsets: {'right' if off < 1e-3 else 'wrong values'}")
