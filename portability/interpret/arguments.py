"""A kernel's arguments as the interpreter passes them: what the launcher makes of Python values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
import triton.language as tl

from portability.interpret.internals import TensorDescriptor, TensorHandle, TensorWrapper
from portability.interpret.memory import Memory
from portability.interpret.values import numpy_dtype

POINTEES = {
    torch.float16: tl.float16, torch.bfloat16: tl.bfloat16, torch.float32: tl.float32, torch.float64: tl.float64,
    torch.float8_e4m3fn: tl.float8e4nv, torch.float8_e5m2: tl.float8e5, torch.float8_e4m3fnuz: tl.float8e4b8,
    torch.float8_e5m2fnuz: tl.float8e5b16, torch.bool: tl.int1, torch.uint8: tl.uint8, torch.int8: tl.int8,
    torch.int16: tl.int16, torch.int32: tl.int32, torch.int64: tl.int64, torch.uint16: tl.uint16,
    torch.uint32: tl.uint32, torch.uint64: tl.uint64,
}  # fmt: skip


class Arguments:
    """Converts arguments; tensors become tagged pointers of `memory`. `semantic` makes descriptors."""

    def __init__(self, memory: Memory, semantic: Any) -> None:
        self.memory = memory
        self.semantic = semantic

    def converted(self, jit: Any, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return every argument of a JITFunction by name; constants stay as they are."""
        return {
            p.name: _constant(arguments[p.name]) if p.is_constexpr
            else self.convert(p.name, arguments[p.name], p.annotation_type, p.is_const)
            for p in jit.params
        }  # fmt: skip

    def convert(self, name: str, value: Any, annotated: str = "", const: bool = False) -> Any:
        """Return one argument as the kernel sees it. Raises `TypeError` naming it where it cannot be one."""
        if isinstance(value, (bool, int, float)):
            return self._number(value, annotated)
        if isinstance(value, tuple):
            items = [self.convert(f"{name}[{i}]", item) for i, item in enumerate(value)]
            return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
        if isinstance(value, (torch.Tensor, TensorWrapper)):
            return self._pointer(name, value, const)
        if isinstance(value, TensorDescriptor):
            return self._descriptor(name, value)
        if hasattr(value, "data_ptr"):
            raise TypeError(
                f"{name}: {type(value).__name__} has an address and is no torch tensor, so that it cannot be checked"
            )
        if isinstance(value, (list, dict, set, np.ndarray)):
            raise TypeError(f"{name}: Triton takes no {type(value).__name__}; tensors, numbers and tuples of them")
        return _constant(value)  # None, a type, a function

    def _number(self, value: float, annotated: str) -> Any:
        dtype = getattr(tl, _ANNOTATED[annotated]) if annotated in _ANNOTATED else _type_of(value)
        data = np.array([value]).astype(numpy_dtype(dtype)) if dtype is not tl.bfloat16 else None
        if data is None:
            return self.semantic.to_tensor(float(value)).to(dtype)
        return tl.tensor(TensorHandle(data, dtype), dtype)

    def _pointer(self, name: str, value: Any, const: bool) -> Any:
        tensor, dtype = value, None
        if isinstance(value, TensorWrapper):
            tensor, dtype = value.base, value.dtype
        if tensor.device.type != "cpu":
            raise TypeError(f"{name}: a tensor on {tensor.device}; the interpreter takes tensors on the CPU")
        element = POINTEES.get(tensor.dtype) if dtype is None else _named(dtype)
        if element is None:
            raise TypeError(f"{name}: Triton has no pointer to {tensor.dtype}")
        pointer = tl.pointer_type(element, 1, const)
        return tl.tensor(TensorHandle(np.array([self.memory.pointer(name, tensor)], dtype=np.uint64), pointer), pointer)

    def _descriptor(self, name: str, value: Any) -> Any:
        strides = [self.convert(name, s) for s in value.strides[:-1]]
        made = self.semantic.make_tensor_descriptor(
            base=self.convert(name, value.base), shape=[self.convert(name, s) for s in value.shape],
            strides=[*strides, tl.constexpr(1)], block_shape=[tl.constexpr(b) for b in value.block_shape],
            padding_option=value.padding,
        )  # fmt: skip
        made.handle.round_f32_to_tf32 = getattr(value, "round_f32_to_tf32", False)
        return made


_ANNOTATED = {
    "i1": "int1", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64", "u1": "int1", "u8": "uint8",
    "u16": "uint16", "u32": "uint32", "u64": "uint64", "fp16": "float16", "bf16": "bfloat16", "fp32": "float32",
    "fp64": "float64",
}  # fmt: skip


def _type_of(value: float) -> Any:
    """The type that the launcher gives a Python number: the narrowest of i32, i64 and u64 that holds an integer."""
    if isinstance(value, bool):
        return tl.int1
    if isinstance(value, float):
        return tl.float32
    if -(2**31) <= value < 2**31:
        return tl.int32
    if -(2**63) <= value < 2**63:
        return tl.int64
    if value < 2**64:
        return tl.uint64
    raise TypeError(f"an integer argument of more than 64 bits: {value}")


def _named(dtype: Any) -> Any:
    """A reinterpreted tensor's type: a Triton type, or the name of one."""
    return dtype if isinstance(dtype, tl.dtype) else getattr(tl, _ANNOTATED.get(str(dtype), str(dtype)))


def _constant(value: Any) -> Any:
    return value.value if isinstance(value, tl.constexpr) else value
