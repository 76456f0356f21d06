"""FlagGems 5.0.2: no pointwise operator compiles with Triton 3.9, which has no block pointers.

`flag_gems.utils.codegen_config_utils` sets `prefer_block_pointer=True` for NVIDIA and AMD, so what
`pointwise_dynamic` writes for `abs` and every other operator loads through `tl.make_block_ptr`, as here. Up to
Triton 3.8 this compiles. Needs Triton and no GPU: it is compiled for sm_90.
"""

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def kernel(x, out, size, BLOCK: tl.constexpr):
    offset = tl.program_id(0) * BLOCK
    source = tl.make_block_ptr(x, shape=(size,), strides=(1,), offsets=(offset,), block_shape=(BLOCK,), order=(0,))
    target = tl.make_block_ptr(out, shape=(size,), strides=(1,), offsets=(offset,), block_shape=(BLOCK,), order=(0,))
    tl.store(target, tl.abs(tl.load(source, boundary_check=(0,))), boundary_check=(0,))


source = ASTSource(kernel, {"x": "*fp32", "out": "*fp32", "size": "i32", "BLOCK": "constexpr"}, {"BLOCK": 512})
triton.compile(source, target=GPUTarget("cuda", 90, 32))
print(f"Triton {triton.__version__}: compiled")
