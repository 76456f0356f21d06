"""FlagGems 5.0.2: on AMD, group_norm, batch_norm, geglu and weight_norm's gradient call CUDA's libdevice.

flag_gems/runtime/backend/_amd/__init__.py has `device_name="cuda"` and no `triton_extra_name`, so `tl_extra_shim` is
`triton.language.extra.cuda.libdevice` there (`set_tl_extra_backend_module`): a kernel that calls its `rsqrt` or `pow`
does not compile. `triton.language.extra.libdevice` is right for both. Needs Triton and no GPU: compiled for gfx942.
"""

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.language.extra.cuda.libdevice import rsqrt


@triton.jit
def kernel(x, out):
    offsets = tl.arange(0, 128)
    tl.store(out + offsets, rsqrt(tl.load(x + offsets)))


source = ASTSource(kernel, {"x": "*fp32", "out": "*fp32"})
triton.compile(source, target=GPUTarget("hip", "gfx942", 64))
print(f"Triton {triton.__version__}: compiled")
