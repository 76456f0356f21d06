"""torchao 0.18.0: `torchao.prototype.moe_training` cannot be imported with Triton 3.9.

`_triton_fp8_rowwise_3d_transpose_cast_rhs_kernel` (moe_training/kernels/float8_rowwise.py) is autotuned by
`key=["num_elements"]`, and has no such argument. Triton 3.9 checks that, up to 3.8 the key was left out. The same name
stands in other kernels of that folder. Needs Triton and no GPU.
"""

import triton
import triton.language as tl


@triton.autotune(configs=[triton.Config({"BLOCK_SIZE": 128})], key=["num_elements"])
@triton.jit
def kernel(input_ptr, output_ptr, N, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    tl.store(output_ptr + offsets, tl.load(input_ptr + offsets, mask=offsets < N), mask=offsets < N)


print(f"Triton {triton.__version__}: decorated")
