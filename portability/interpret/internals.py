"""Everything of Triton's private parts that the checked interpreter touches, for Triton 3.6 to 3.9, in one place.

- `triton.runtime.interpreter`: `InterpreterBuilder` is the base of the checked builder; `TensorHandle` holds a block's
  numpy array and element type, `TensorDescHandle` a descriptor. Neither its executor, its rewriter nor its patching of
  `triton.language` is used, and `TRITON_INTERPRET` stays unset: kernels are decorated for compiling.
- `triton._C.libtriton.interpreter`: `load`, `store`, `atomic_rmw`, `atomic_cas` on arrays of addresses, and since 3.9
  `fma_fp32` and `fma_fp64`; `triton._C.libtriton.ir`: the enumerations that the builder is called with.
- `triton.language.semantic.TritonSemantic`: the front end, given the checked builder; `dot_scaled`,
  `device_assert` and `_has_native_tma` are overridden.
- `triton.language`: while a kernel runs, builtins (known by `is_builtin`) are bound to that front end in all its
  modules and classes, and what the code generator handles itself (`range`, `reduce`, `multiple_of`, …) is replaced.
- `triton.runtime.jit`: `JITFunction.run` and `__call__` are replaced while a session is open; `.fn`, `.src`,
  `.raw_src`, `.starting_line_number`, `.params` and `.pre_run_hooks` are read; `TensorWrapper.base`.
- `triton.runtime.autotuner`: `Autotuner.run` is replaced while a session is open; `.nargs`, `.arg_names`,
  `prune_configs`, `pre_hook`, `post_hook` are used as its own `run` uses them.
- `triton.knobs`: `runtime.interpret` must be off.
- `triton.backends.backends`: what each target's compiler says of its options, dot sizes, precisions and libdevice.
"""

from __future__ import annotations

from triton._C.libtriton import interpreter as native
from triton._C.libtriton import ir
from triton.language.core import is_builtin
from triton.language.semantic import TritonSemantic
from triton.runtime.autotuner import Autotuner
from triton.runtime.errors import InterpreterError
from triton.runtime.interpreter import InterpreterBuilder, InterpreterOptions, TensorDescHandle, TensorHandle
from triton.runtime.jit import JITFunction, TensorWrapper
from triton.tools.tensor_descriptor import TensorDescriptor

__all__ = [
    "Autotuner",
    "InterpreterBuilder",
    "InterpreterError",
    "InterpreterOptions",
    "JITFunction",
    "TensorDescHandle",
    "TensorDescriptor",
    "TensorHandle",
    "TensorWrapper",
    "TritonSemantic",
    "ir",
    "is_builtin",
    "native",
]
