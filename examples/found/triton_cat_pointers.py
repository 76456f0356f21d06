"""Triton 3.6.0 to 3.9.0: `tl.cat` of two blocks of pointers does not compile for AMD.

`failed to legalize operation 'tt.cat' that was explicitly marked illegal`, where the pointers are to tensors below
2 GiB, which a launch on AMD specialises for (`tt.pointer_range`). sm_90 compiles it. Met in FlagGems'
`bucket_sort_topk`. Needs Triton and no GPU: it is compiled for gfx942.
"""

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def kernel(x, out, other, SIZE: tl.constexpr):
    block = tl.load(x + tl.arange(0, SIZE))
    places = tl.cat(out + tl.arange(0, SIZE), other + tl.arange(0, SIZE), can_reorder=True)
    tl.store(places, tl.cat(block, block, can_reorder=True))


signature = {"x": "*fp32", "out": "*fp32", "other": "*fp32", "SIZE": "constexpr"}
attributes = {(i,): [["tt.divisibility", 16], ["tt.pointer_range", 32]] for i in range(3)}
triton.compile(ASTSource(kernel, signature, {"SIZE": 64}, attributes), target=GPUTarget("hip", "gfx942", 64))
print(f"Triton {triton.__version__}: compiled")
