"""mamba-ssm 2.3.2.post1: kernels of Mamba-3 hold PTX, which is nothing on AMD.

`mamba_ssm/ops/triton/mamba3/utils.py` makes cosines, sines, tanh and sigmoids of inline assembly, `cos.approx.f32`,
with no branch for other vendors. The compiler prints `error: could not allocate output register for constraint 'f'`
and returns a binary all the same, which is wrong. Needs Triton and no GPU: it is compiled for gfx942.
"""

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def kernel(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    cosine = tl.inline_asm_elementwise(
        "cos.approx.f32 $0, $1;", constraints="=f,f", args=[tl.load(x + i)], dtype=tl.float32, is_pure=True, pack=1
    )
    tl.store(out + i, cosine)


triton.knobs.compilation.always_compile = True  # what is in the cache already says nothing
source = ASTSource(kernel, {"x": "*fp32", "out": "*fp32", "BLOCK": "constexpr"}, {"BLOCK": 256})
made = triton.compile(source, target=GPUTarget("hip", "gfx942", 64))
print(f"Triton {triton.__version__}: a binary of {len(made.asm['hsaco'])} bytes, whatever was printed")
