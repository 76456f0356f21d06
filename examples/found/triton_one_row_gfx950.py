"""Triton 3.8 and 3.9: on gfx950, a loop that loads one row and a tile does not compile.

`cannot lower 'amdg.buffer_load_to_local' to a direct-to-LDS copy: the resulting writes into shared memory are not
coalesced for a vectorization of 4 element(s)`, and with 3.8 `failed to translate module to LLVM IR`. Two rows compile,
and so does gfx942; Triton 3.6 and 3.7 compile it. Needs Triton and no GPU.
"""

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def kernel(q, k, r, out, n):
    columns = tl.arange(0, 64)[None, :]
    tile = tl.arange(0, 64)[:, None] * 64 + columns
    a = tl.load(q + tile)
    sums = tl.zeros((64, 64), tl.float32)
    for i in range(0, n, 64):
        row = tl.load(r + (i + tl.arange(0, 1))[:, None] * 64 + columns)  # (1, 64)
        sums += tl.dot((a.to(tl.float32) * row).to(tl.bfloat16), tl.load(k + i * 64 + tile))
    tl.store(out + tile, sums)


signature = {"q": "*bf16", "k": "*bf16", "r": "*fp32", "out": "*fp32", "n": "i32"}
source = ASTSource(kernel, signature, {}, {(i,): [["tt.divisibility", 16]] for i in range(5)})
triton.compile(source, target=GPUTarget("hip", "gfx950", 64))
print(f"Triton {triton.__version__}: compiled")
