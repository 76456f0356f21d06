"""Checks that the operators share. Every error names the operator, what was given and what is taken."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from portability.kernel import kept_until_forgotten

FLOATS = (torch.float32, torch.float16, torch.bfloat16)


def named(dtype: torch.dtype) -> str:
    """Return a dtype's name without `torch.`."""
    return str(dtype).removeprefix("torch.")


def once_per_layout(function: Callable[..., Any], tensors: int | None = None) -> Callable[..., Any]:
    """Return `function` memoised by the shapes, strides, dtypes and devices of its operands; plain values count too.

    For checks and for plans of launches, which would cost more than the launch itself if they were made at each call.
    It may look blocks up: `forget_blocks` makes it forget its results.

    tensors: how many operands lead that are tensors, one that may be None among them; all parameters by default. One or
    two, which most functions take, are not gone through in a loop.
    """
    kept = kept_until_forgotten()

    def look_up(key: tuple[Any, ...], operands: tuple[Any, ...]) -> Any:
        found = kept.get(key, kept)  # itself: what no function returns
        if found is kept:
            found = function(*operands)
            if len(kept) >= 4096:  # a program whose sizes never repeat
                kept.clear()
            kept[key] = found
        return found

    def of_one(x: torch.Tensor, *more: Any) -> Any:
        key = x.shape, x.stride(), x.dtype, x.device, x.is_neg(), more
        found = kept.get(key, kept)
        return look_up(key, (x, *more)) if found is kept else found

    def of_two(x: torch.Tensor, y: torch.Tensor | None, *more: Any) -> Any:
        if y is None:
            key: tuple[Any, ...] = x.shape, x.stride(), x.dtype, x.device, x.is_neg(), more
        else:
            key = (
                x.shape, x.stride(), x.dtype, x.device, x.is_neg(),
                y.shape, y.stride(), y.dtype, y.device, y.is_neg(), more,
            )  # fmt: skip
        found = kept.get(key, kept)
        return look_up(key, (x, y, *more)) if found is kept else found

    def of_any(*operands: Any) -> Any:
        key = tuple([_layout(t) if isinstance(t, torch.Tensor) else (type(t), t) for t in operands])  # 1 == True
        try:
            hash(key)
        except TypeError:  # a list, which the function refuses in its own words
            return function(*operands)
        return look_up(key, operands)

    count = len(inspect.signature(function).parameters) if tensors is None else tensors
    run: Callable[..., Any] = {1: of_one, 2: of_two}.get(count, of_any)
    functools.update_wrapper(run, function)
    return run


def _layout(tensor: torch.Tensor) -> tuple[Any, ...]:
    return tensor.shape, tensor.stride(), tensor.dtype, tensor.device, tensor.is_neg()


def check_device(operator: str, **tensors: torch.Tensor | None) -> None:
    """Raise `ValueError` unless the tensors share one device, of whatever kind. `None` is an operand not given."""
    given = {name: t.device for name, t in tensors.items() if t is not None}
    if len(set(given.values())) > 1:
        places = ", ".join(f"{name} on {device}" for name, device in given.items())
        raise ValueError(f"{operator}: operands must share one device, but there are {places}")


def check_dtype(operator: str, taken: Sequence[torch.dtype], **tensors: torch.Tensor | None) -> None:
    """Raise `TypeError` unless the tensors share one dtype and it is one of `taken`.

    Raise `ValueError` for a view whose numbers torch negates as they are read: a kernel reads them as they lie.
    """
    for name, t in tensors.items():
        if t is not None and t.is_neg():
            raise ValueError(f"{operator}: {name} is a negated view: its memory holds the opposite; call resolve_neg()")
    given = {name: t.dtype for name, t in tensors.items() if t is not None}
    for name, dtype in given.items():
        if dtype not in taken:
            raise TypeError(f"{operator}: {name} is {named(dtype)}; taken are {', '.join(map(named, taken))}")
    if len(set(given.values())) > 1:
        dtypes = ", ".join(f"{name} is {named(dtype)}" for name, dtype in given.items())
        raise TypeError(f"{operator}: operands must share one dtype, but {dtypes}")


def check_shape(operator: str, **expected: tuple[torch.Tensor | None, Sequence[int | str]]) -> None:
    """Raise `ValueError` unless each tensor has its shape: `check_shape("f", w=(w, (n, "K")))`.

    A number is the size that the dimension must have; a string names a dimension of any size.
    """
    for name, (tensor, shape) in expected.items():
        if tensor is None:
            continue
        wanted = [want if isinstance(want, int) else got for want, got in zip(shape, tensor.shape, strict=False)]
        if tensor.ndim != len(shape) or list(tensor.shape) != wanted:
            form = f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"
            raise ValueError(f"{operator}: {name} has shape {tuple(tensor.shape)}, expected {form}")


def check_contiguous(operator: str, **tensors: torch.Tensor | None) -> None:
    """Raise `ValueError` unless the tensors are contiguous: a silent copy would cost more than many kernels."""
    for name, t in tensors.items():
        if t is not None and not t.is_contiguous():
            raise ValueError(f"{operator}: {name} {tuple(t.shape)} has strides {t.stride()}; contiguous ones are taken")


def check_last_stride(operator: str, **tensors: torch.Tensor | None) -> None:
    """Raise `ValueError` unless neighbours along the last dimension are neighbours in memory."""
    for name, t in tensors.items():
        if t is not None and t.ndim and t.shape[-1] > 1 and t.stride(-1) != 1:
            raise ValueError(f"{operator}: {name} has strides {t.stride()}; 1 in the last dimension is taken")


def differentiating(*tensors: torch.Tensor | None) -> bool:
    """Return whether autograd would follow an operation on the tensors: without it, an operator saves nothing."""
    for t in tensors:  # a loop and not `any`: this is on the way of every call
        if t is not None and t.requires_grad:
            return torch.is_grad_enabled()
    return False


def contiguous_like(tensor: torch.Tensor) -> torch.Tensor:
    """Return an uninitialised contiguous tensor of the shape, dtype and device of `tensor`.

    `torch.empty(shape, dtype=..., device=...)` gives the same and takes three times as long, and the memory format a
    quarter longer than without.
    """
    if tensor.is_contiguous():
        return torch.empty_like(tensor)
    return torch.empty_like(tensor, memory_format=torch.contiguous_format)


def rows_of(operator: str, name: str, tensor: torch.Tensor) -> torch.Tensor:
    """Return `tensor` (..., N) as a view (M, N). Raises `ValueError` where that would need a copy."""
    if tensor.ndim == 2:
        return tensor
    if tensor.ndim == 0:
        raise ValueError(f"{operator}: {name} is a scalar; at least one dimension is needed")
    try:
        return tensor.view(math.prod(tensor.shape[:-1]), tensor.shape[-1])
    except RuntimeError:
        raise ValueError(
            f"{operator}: {name} of shape {tuple(tensor.shape)} and strides {tensor.stride()} is not a view of rows: "
            f"its leading dimensions must lie evenly; make it contiguous first"
        ) from None


def check_no_gradient(operator: str, **tensors: torch.Tensor | None) -> None:
    """Raise `ValueError` where autograd would follow an operator without a backward: its result would look constant."""
    for name, t in tensors.items():
        if t is not None and t.requires_grad and torch.is_grad_enabled():
            raise ValueError(f"{operator}: {name} requires a gradient, which is not computed here; detach it")
