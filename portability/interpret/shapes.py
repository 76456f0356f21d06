"""Operations that move lanes and compute nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import triton.language as tl

from portability.interpret.internals import InterpreterBuilder, TensorHandle
from portability.interpret.undefined import KEY, Undefined
from portability.interpret.values import numpy_dtype

Handle = Any


def carrying(operation: Callable[..., Any]) -> Callable[..., Any]:
    """Return the operation so that it moves the undefined lanes of its operands in the same way."""

    def method(self: Any, *args: Any) -> Any:
        out = operation(self, *args)
        marked = next((a for a in args if isinstance(a, TensorHandle) and KEY in a.attr), None)
        if marked is not None:
            shadow = operation(self, *(_lanes(a) if isinstance(a, TensorHandle) else a for a in args))
            pairs = zip(out, shadow, strict=True) if isinstance(out, tuple) else [(out, shadow)]
            for handle, lanes in pairs:
                if lanes.data.any():
                    handle.attr[KEY] = Undefined(lanes.data, marked.attr[KEY].place)
        return out

    return method


def _lanes(handle: Handle) -> Handle:
    undefined = handle.attr.get(KEY)
    data = np.zeros(handle.data.shape, dtype=bool) if undefined is None else undefined.lanes
    return TensorHandle(data, tl.int1)


class Shapes(InterpreterBuilder):  # type: ignore[misc]
    """Reshaping, broadcasting, joining and reinterpreting."""

    create_reshape = carrying(InterpreterBuilder.create_reshape)
    create_trans = carrying(InterpreterBuilder.create_trans)
    create_expand_dims = carrying(InterpreterBuilder.create_expand_dims)
    create_broadcast = carrying(InterpreterBuilder.create_broadcast)
    create_cat = carrying(InterpreterBuilder.create_cat)
    create_join = carrying(InterpreterBuilder.create_join)
    create_split = carrying(InterpreterBuilder.create_split)

    @carrying
    def create_splat(self, ret_ty: Any, arg: Handle) -> Handle:
        """Fill a block with a scalar."""
        return TensorHandle(np.full(ret_ty.shape, arg.data.item(), dtype=arg.data.dtype), arg.dtype.scalar)

    @carrying
    def create_unsplat(self, arg: Handle) -> Handle:
        """Take the scalar of a block of one element."""
        return TensorHandle(arg.data.reshape(1), arg.dtype.scalar)

    def create_bitcast(self, src: Handle, dst_type: Any) -> Handle:
        """Take the same bits as another type of the same width, or a pointer as its address."""
        out = TensorHandle(src.data.view(numpy_dtype(dst_type)), dst_type.scalar)
        out.attr.update(src.attr)
        return out

    create_int_to_ptr = create_bitcast
    create_ptr_to_int = create_bitcast

    def get_null_value(self, type: Any) -> Handle:
        """A zero of `type`."""
        return TensorHandle(np.zeros(1, dtype=numpy_dtype(type)), type.scalar)

    def get_all_ones_value(self, type: Any) -> Handle:
        """A value of `type` with every bit set."""
        kind = numpy_dtype(type)
        ones = np.ones(1, dtype=kind) if kind == np.bool_ else np.full(1, -1, dtype=np.int64).astype(kind)
        return TensorHandle(ones, type.scalar)
