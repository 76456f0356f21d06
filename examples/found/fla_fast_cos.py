"""fla-core 0.6.0: on AMD, `chunk_cyfa` does not compile: HIP's libdevice has no `fast_cosf`.

fla/ops/cyfa/utils.py makes its cosines and sines of `libdevice.fast_cosf` and `libdevice.fast_sinf` on every target.
Needs Triton and no GPU: it is compiled for gfx942.
"""

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.language.extra import libdevice


@triton.jit
def kernel(x, out):
    offsets = tl.arange(0, 128)
    tl.store(out + offsets, libdevice.fast_cosf(tl.load(x + offsets)))


source = ASTSource(kernel, {"x": "*fp32", "out": "*fp32"})
triton.compile(source, target=GPUTarget("hip", "gfx942", 64))
print(f"Triton {triton.__version__}: compiled")
