"""fla-core 0.6.0: on AMD, `chunk_precond_kda` does not compile: its products ask for the precision "tf32x3".

fla/ops/precond_kda/wy_fast.py has `DOT_PRECISION: tl.constexpr = 'tf32x3'` and no caller changes it, where
chunk_intra.py beside it takes 'ieee' on a device without TF32. Needs Triton and no GPU: it is compiled for gfx942.
"""

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def kernel(x, out, DOT_PRECISION: tl.constexpr = "tf32x3"):
    places = tl.arange(0, 32)[:, None] * 32 + tl.arange(0, 32)[None, :]
    block = tl.load(x + places)
    tl.store(out + places, tl.dot(block, block, input_precision=DOT_PRECISION))


signature = {"x": "*fp32", "out": "*fp32", "DOT_PRECISION": "constexpr"}
source = ASTSource(kernel, signature, {"DOT_PRECISION": "tf32x3"})
triton.compile(source, target=GPUTarget("hip", "gfx942", 64))
print(f"Triton {triton.__version__}: compiled")
