"""Casts: rounded once, to nearest even unless the kernel asks for toward zero; floats out of range saturate."""

# ruff: noqa: D102 - these methods have the names, arguments and meaning of Triton's builder

from __future__ import annotations

from typing import Any

import numpy as np
import triton.language as tl

from portability.interpret import checks
from portability.interpret.elementwise import Elementwise, numbers
from portability.interpret.internals import TensorHandle, ir
from portability.interpret.undefined import spread
from portability.interpret.values import NARROW, numpy_dtype

Handle = Any  # a TensorHandle


class Conversion(Elementwise):
    """Between the number types."""

    def get_bf16(self, value: float) -> Handle:
        """A bfloat16 constant."""
        return self.encode(np.array([value], dtype=np.float32), tl.bfloat16)

    def convert_custom_types(self, input: Any, dst_ty: Any, fp_downcast_rounding: Any, _semantic: Any) -> Any:
        """The casts of fp8e4b15, which the front end leaves to a back end."""
        return tl.tensor(self.create_fp_to_fp(input.handle, dst_ty, fp_downcast_rounding), dst_ty)

    def cast_impl(self, src: Handle, dst_type: Any) -> Handle:
        target = dst_type.scalar
        values = numbers(src)
        if not target.is_floating():
            return spread(TensorHandle(values.astype(numpy_dtype(target)), target), src)
        if target.name in NARROW and values.dtype.kind != "f":
            values = values.astype(np.float64)
        return self.encode(values, target, False, src)

    def create_fp_to_fp(self, src: Handle, dst_type: Any, rounding_mode: Any) -> Handle:
        return self.encode(numbers(src), dst_type, rounding_mode == ir.ROUNDING_MODE.RTZ, src)

    def create_fp_to_si(self, src: Handle, dst_type: Any) -> Handle:
        """Toward zero; what is out of range gives the nearest integer and NaN gives 0, as on NVIDIA GPUs."""
        values, kind = numbers(src), numpy_dtype(dst_type)
        lanes = checks.out_of_range(values.astype(np.float64), kind) if values.size else None
        if lanes is None:
            return spread(TensorHandle(values.astype(kind), dst_type.scalar), src)
        worst = values[lanes].reshape(-1)[0].item()
        self.warn("float-to-int", lanes, f"{worst:g} has no {dst_type.scalar.name}: targets answer differently", src)
        info = np.iinfo(kind)
        inside = np.where(lanes, 0, values).astype(kind)
        edge = np.where(np.isnan(values), 0, np.where(values < 0, info.min, info.max)).astype(kind)
        return spread(TensorHandle(np.where(lanes, edge, inside), dst_type.scalar), src)

    create_fp_to_ui = create_fp_to_si
