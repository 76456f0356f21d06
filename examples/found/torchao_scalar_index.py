"""torchao 0.18.0: `triton_fp8_blockwise_weight_quant_transposed_rhs` indexes a program id as if it were a block.

The kernel ends (torchao/prototype/blockwise_fp8_training/kernels.py) with

    scale_m = pid_m
    scale_k = pid_n
    scale_offs = scale_k[:, None] * s_stride_dim_0 + scale_m[None, :] * s_stride_dim_1

`pid_m` and `pid_n` are scalars. Needs Triton and no GPU: it is compiled for sm_90.
"""

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def kernel(scales, stride_0, stride_1):
    row, column = tl.program_id(0), tl.program_id(1)
    tl.store(scales + row[:, None] * stride_0 + column[None, :] * stride_1, 1.0)


source = ASTSource(kernel, {"scales": "*fp32", "stride_0": "i32", "stride_1": "i32"})
triton.compile(source, target=GPUTarget("cuda", 90, 32))
print(f"Triton {triton.__version__}: compiled")
