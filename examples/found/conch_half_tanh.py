"""conch-triton-kernels 1.3: `gelu_tanh_and_mul` does not compile for float16, the dtype that it is made for.

`conch/kernels/activation/gelu_tanh_and_mul.py` hands what it has loaded to `libdevice.tanh`, which has overloads for
float32 and float64 alone. Needs Triton and no GPU: it is compiled for sm_90; for every other target it is the same.
"""

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.language.extra import libdevice


@triton.jit
def kernel(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, libdevice.tanh(tl.load(x + i)))


source = ASTSource(kernel, {"x": "*fp16", "out": "*fp16", "BLOCK": "constexpr"}, {"BLOCK": 512})
triton.compile(source, target=GPUTarget("cuda", 90, 32))
print(f"Triton {triton.__version__}: compiled")
