"""Triton 3.9.0: an int8 `tl.dot` makes invalid IR for sm_75.

Turing has had no matrix instructions in Triton since 3.3, so a product becomes fused multiply-adds, and the lowering
extends the operands as floating-point numbers. Met in torchao's `_scaled_int8_mm_kernel` and
`scaled_matmul_kernel_with_block_pointers`. Needs Triton and no GPU: it is compiled for sm_75.
"""

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def kernel(a, b, out):
    places = tl.arange(0, 32)[:, None] * 32 + tl.arange(0, 32)[None, :]
    tl.store(out + places, tl.dot(tl.load(a + places), tl.load(b + places)))


source = ASTSource(kernel, {"a": "*i8", "b": "*i8", "out": "*i32"})
triton.compile(source, target=GPUTarget("cuda", 75, 32))
print(f"Triton {triton.__version__}: compiled")
