"""What operators ask of their operands. A message names the operator, what was given, and what is taken."""

import torch


def one_device(operator: str, **tensors: torch.Tensor | None) -> None:
    """Raise `ValueError` unless the tensors lie on one device, whichever it is; `None` stands for one not given."""
    given = {name: t for name, t in tensors.items() if t is not None}
    if len({t.device for t in given.values()}) > 1:
        where = ", ".join(f"{name} is on {t.device}" for name, t in given.items())
        raise ValueError(f"{operator}: {where}; one device is taken")


def one_dtype(operator: str, **tensors: torch.Tensor | None) -> None:
    """Raise `TypeError` unless the tensors have one dtype; `None` stands for one not given."""
    given = {name: t for name, t in tensors.items() if t is not None}
    if len({t.dtype for t in given.values()}) > 1:
        what = ", ".join(f"{name} is {_name(t.dtype)}" for name, t in given.items())
        raise TypeError(f"{operator}: {what}; one dtype is taken")


def dtype_among(operator: str, name: str, tensor: torch.Tensor, dtypes: tuple[torch.dtype, ...]) -> None:
    """Raise `TypeError` unless the tensor's dtype is one of `dtypes`."""
    if tensor.dtype not in dtypes:
        taken = ", ".join(_name(d) for d in dtypes)
        raise TypeError(f"{operator}: {name} is {_name(tensor.dtype)}; taken are {taken}")


def shape_is(operator: str, name: str, tensor: torch.Tensor | None, shape: tuple[int, ...]) -> None:
    """Raise `ValueError` unless the tensor, if given, has that shape."""
    if tensor is not None and tuple(tensor.shape) != tuple(shape):
        raise ValueError(f"{operator}: {name} has shape {tuple(tensor.shape)}; {tuple(shape)} is taken")


def contiguous(operator: str, **tensors: torch.Tensor | None) -> None:
    """Raise `ValueError` unless the tensors are contiguous: a silent copy would cost more than many kernels."""
    for name, t in tensors.items():
        if t is not None and not t.is_contiguous():
            raise ValueError(
                f"{operator}: {name} of shape {tuple(t.shape)} has strides {t.stride()}; contiguous is taken"
            )


def as_rows(operator: str, name: str, tensor: torch.Tensor) -> torch.Tensor:
    """Return the tensor as (rows, columns) over its last dimension, as a view.

    Raises `ValueError` for no dimension, and where the leading dimensions cannot be one without a copy.
    """
    if tensor.dim() == 0:
        raise ValueError(f"{operator}: {name} is a scalar; at least one dimension is taken")
    if tensor.dim() == 2:
        return tensor
    rows = tensor.numel() // tensor.shape[-1] if tensor.shape[-1] else 0
    try:
        return tensor.view(rows, tensor.shape[-1])
    except RuntimeError:
        raise ValueError(
            f"{operator}: {name} of shape {tuple(tensor.shape)} has strides {tensor.stride()}; "
            "leading dimensions that are one without a copy are taken"
        ) from None


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
