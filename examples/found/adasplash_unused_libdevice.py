"""adasplash 0.2.2: on AMD no kernel of `adasplash_v2.py`, `triton_entmax.py` and `triton_entmax_v2.py` compiles.

The modules import `float2int_rd` and `fast_powf` from `triton.language.extra.libdevice`, which CUDA's library has and
HIP's has not. Triton looks up every such name of a kernel's module when it compiles the kernel, also of one that does
not use it, as here. Needs Triton and no GPU: it is compiled for gfx942.
"""

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.language.extra.libdevice import float2int_rd  # noqa: F401 - that nobody uses it is the point


@triton.jit
def kernel(x, BLOCK: tl.constexpr):
    tl.store(x + tl.arange(0, BLOCK), 1.0)


source = ASTSource(kernel, {"x": "*fp32", "BLOCK": "constexpr"}, {"BLOCK": 512})
triton.compile(source, target=GPUTarget("hip", "gfx942", 64))
print(f"Triton {triton.__version__}: compiled")
